import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import { ApiError } from '../../../kernel/errors';

const METHODS: readonly HTTPMethods[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Answers requests without a route: 405 for a path that exists for other methods, else 404. */
export interface Unrouted {
  /**
   * Called after all routes: a fixed path is not matched as a parameter of another route (`/v1/events/emit` is no
   * event).
   */
  finish(): void;
}

/** To be called before the first route. */
export function answerUnrouted(app: FastifyInstance): Unrouted {
  /** Methods by path in Fastify's syntax. */
  const routes = new Map<string, Set<string>>();
  let finished = false;
  app.addHook('onRoute', ({ method, url }) => {
    if (finished || url.includes('*')) return;
    const methods = routes.get(url) ?? new Set();
    for (const one of [method].flat()) methods.add(one);
    routes.set(url, methods);
  });
  app.addHook('onRequest', (request, _reply, done) => {
    const parameters = request.params as Record<string, string>;
    for (const name in parameters) if (parameters[name] === '') return done(notFound());
    done();
  });
  const refuse = (request: FastifyRequest, reply: FastifyReply) => {
    const path = request.url.split('?')[0]!.split('/');
    const own = routes.get(path.join('/'));
    const methods = own ?? new Set([...routes].flatMap(([known, has]) => (matches(known, path) ? [...has] : [])));
    if (methods.size === 0) throw notFound();
    void reply.header('allow', [...methods, 'OPTIONS'].sort().join(', '));
    throw new ApiError('BAD_REQUEST', 'Method not allowed', { status: 405 });
  };
  // Before the body is read, because a request without a route must not fail by its content type.
  app.addHook('preParsing', (request, reply, _payload, done) => {
    if (request.is404) refuse(request, reply);
    done();
  });
  app.setNotFoundHandler(refuse);
  return {
    finish() {
      finished = true;
      for (const [path, own] of routes) {
        if (path.includes(':')) continue;
        for (const method of METHODS) {
          const shadowed = [...routes].some(
            ([other, has]) => other !== path && has.has(method) && matches(other, path.split('/')),
          );
          if (!own.has(method) && shadowed) app.route({ method, url: path, handler: refuse });
        }
      }
    },
  };
}

const notFound = () => new ApiError('NOT_FOUND', 'Not found');

function matches(pattern: string, segments: readonly string[]): boolean {
  const wanted = pattern.split('/');
  return (
    wanted.length === segments.length &&
    wanted.every((part, i) => part === segments[i] || (part.startsWith(':') && segments[i] !== ''))
  );
}
