import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';
import { printSchema, type GraphQLSchema } from 'graphql';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Settings } from '../../kernel/settings/settings';
import type { SendText } from '../http/answers/slow-readers';
import { JSON_TYPE } from '../rest/rest';

export interface DocsOptions {
  settings: Settings;
  schema: GraphQLSchema;
  sendText: SendText;
  /** The OpenAPI document, made on its first request. */
  openapi(): Record<string, unknown>;
  /** The AsyncAPI document of the WebSocket, made on its first request. */
  asyncapi(): Record<string, unknown>;
}

/** Content security policies: pages load nothing from other origins; exceptions are listed per kind of page. */
const SWAGGER_CSP =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/**
 * GraphiQL arrives as one page with its scripts inside, starts its editor's workers from blobs, and its editor styles
 * lines inline.
 */
const GRAPHIQL_CSP =
  "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:; worker-src blob:; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; connect-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/**
 * Serves the SDL, the OpenAPI and AsyncAPI documents, Swagger UI and GraphiQL, as the settings allow. Source: spec doc1
 * §1, §9.3.
 */
export async function registerDocs(app: FastifyInstance, options: DocsOptions): Promise<void> {
  const { settings, schema, sendText, openapi, asyncapi } = options;
  const sdl = `${printSchema(schema)}\n`;
  app.get('/v1/schema', async (_request, reply) => sendText(reply.type('text/plain; charset=utf-8'), sdl, true));

  let text: string | undefined;
  const document = () => (text ??= JSON.stringify(openapi()));
  if (settings.docs.swagger_ui) {
    app.get('/v1/api-doc/openapi.json', async (_request, reply) =>
      sendText(reply.header('content-type', JSON_TYPE), document(), true),
    );
    await registerSwagger(app);
  }
  if (settings.docs.openapi_json) {
    app.get('/v1/openapi.json', async (_request, reply) =>
      sendText(reply.header('content-type', JSON_TYPE), document(), true),
    );
  }
  let channels: string | undefined;
  if (settings.docs.openapi_json) {
    app.get('/v1/asyncapi.json', async (_request, reply) =>
      sendText(reply.header('content-type', JSON_TYPE), (channels ??= JSON.stringify(asyncapi())), true),
    );
  }
  if (settings.graphql.playground) {
    let page: Promise<string> | undefined;
    app.get('/v1/graphiql', async (_request, reply) =>
      reply
        .header('content-security-policy', GRAPHIQL_CSP)
        .type('text/html; charset=utf-8')
        .send(await (page ??= renderExplorer())),
    );
  }
}

/** Renders the editor; its nine megabytes are loaded on the first request, not at every start. */
async function renderExplorer(): Promise<string> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  return renderGraphiQL({ title: 'Lumio GraphiQL', endpoint: '/v1/gql' } as Parameters<typeof renderGraphiQL>[0]);
}

const SWAGGER_START = `window.ui = SwaggerUIBundle({
  url: '/v1/api-doc/openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
  layout: 'StandaloneLayout',
});
`;

async function registerSwagger(app: FastifyInstance): Promise<void> {
  const root = dirname(require.resolve('swagger-ui-dist/package.json'));
  const index = readFileSync(join(root, 'index.html'), 'utf8');
  await app.register(async (scope) => {
    scope.addHook('onSend', async (_request, reply) => {
      void reply.header('content-security-policy', SWAGGER_CSP);
    });
    scope.get('/v1/swagger-ui', async (_request, reply) => reply.redirect('/v1/swagger-ui/', 301));
    scope.get('/v1/swagger-ui/', async (_request, reply) => reply.type('text/html; charset=utf-8').send(index));
    scope.get('/v1/swagger-ui/swagger-initializer.js', async (_request, reply) =>
      reply.type('text/javascript; charset=utf-8').send(SWAGGER_START),
    );
    await scope.register(fastifyStatic, {
      root,
      prefix: '/v1/swagger-ui/',
      index: false,
      wildcard: true,
      allowedPath: (path) => /\.(css|js|png)$/.test(path),
      cacheControl: true,
      maxAge: '1h',
    });
  });
}
