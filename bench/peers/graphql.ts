import { peer } from '../harness';
import { RESOLVERS, TYPE_DEFS } from './graphql-sample';
import { serve, type PeerApp } from './listen';

type App = PeerApp & {
  register(plugin: unknown, options?: object): Promise<unknown>;
  post(path: string, handler: unknown): unknown;
  route(options: object): unknown;
};

/** The peers as their documentation sets them up, without authentication or limits. */
const PEERS: Record<string, (app: App) => Promise<void>> = {
  /** Stock: the defaults of @apollo/server with its Fastify integration. */
  async apollo(app) {
    const { ApolloServer } = peer<{ ApolloServer: new (options: object) => { start(): Promise<void> } }>(
      '@apollo/server',
    );
    const { default: fastifyApollo } = peer<{ default: (server: object) => unknown }>('@as-integrations/fastify');
    const server = new ApolloServer({ typeDefs: TYPE_DEFS, resolvers: RESOLVERS });
    await server.start();
    await app.register(fastifyApollo(server), { path: '/v1/gql' });
  },
  async yoga(app) {
    const { createYoga, createSchema } = peer<{
      createYoga(options: object): { handleNodeRequestAndResponse(...given: unknown[]): Promise<Response> };
      createSchema(options: object): object;
    }>('graphql-yoga');
    const yoga = createYoga({
      schema: createSchema({ typeDefs: TYPE_DEFS, resolvers: RESOLVERS }),
      graphqlEndpoint: '/v1/gql',
      logging: false,
    });
    app.route({
      url: '/v1/gql',
      method: ['POST'],
      handler: (request: unknown, reply: unknown) =>
        yoga.handleNodeRequestAndResponse(request, reply, { req: request, reply }),
    });
  },
  async mercurius(app) {
    await app.register(peer<unknown>('mercurius'), {
      schema: TYPE_DEFS,
      resolvers: RESOLVERS,
      path: '/v1/gql',
      jit: 1,
    });
  },
};

async function main(name: string): Promise<void> {
  const app = peer<(options: object) => App>('fastify')({ logger: false });
  await PEERS[name]!(app);
  await serve(app);
}

void main(process.argv[2]!);
