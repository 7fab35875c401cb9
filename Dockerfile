# The image ships on Node 24; the project runs on 20.19 and newer.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund
COPY . .
RUN node scripts/build.mjs && rm -rf dist/test dist/bench && npm prune --omit=dev

FROM node:24-bookworm-slim
ENV NODE_ENV=production LUMIO_ENV=production LUMIO_HOST=0.0.0.0 LUMIO_DATA_DIR=/data
RUN mkdir /data && chown node:node /data
WORKDIR /app
COPY --from=build --chown=root:root /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
USER node
VOLUME /data
EXPOSE 7070
# node itself is the process that gets the signals: npm would end before the server has drained.
ENTRYPOINT ["node", "--enable-source-maps", "dist/bin/main.js"]
CMD ["start"]
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["node", "dist/bin/main.js", "health"]
