import { z } from 'zod';
import { feature, permission } from '../../access/authorization/guards';
import { query, type Operation } from '../../app/operation';
import { whole } from '../../kernel/operations/pages';
import { get } from '../../kernel/operations/routes';

const Person = z
  .object({ id: z.string(), display_name: z.string(), avatar_url: z.string().nullable() })
  .meta({ id: 'Person' });
const Channel = z
  .object({ id: z.string(), name: z.string(), followers: z.int(), owner: Person })
  .meta({ id: 'Channel' });
const Broadcast = z
  .object({
    id: z.string(),
    title: z.string(),
    viewers: z.int(),
    started_at: z.string(),
    live: z.boolean(),
    channel: Channel,
    moderators: z.array(Person),
  })
  .meta({ id: 'Broadcast' });

const person = (n: number) => ({
  id: `person-${n}`,
  display_name: `Viewer ${n}`,
  avatar_url: n % 3 === 0 ? null : `https://example.com/avatars/${n}.webp`,
});

export const BROADCASTS = Array.from({ length: 25 }, (_, n) => ({
  id: `broadcast-${n}`,
  title: `Building a keyboard, part ${n}`,
  viewers: 100 + n * 7,
  started_at: '2026-08-01T11:00:00Z',
  live: n % 2 === 0,
  channel: { id: `channel-${n}`, name: `channel_${n}`, followers: 1000 + n, owner: person(n) },
  moderators: [person(n + 1), person(n + 2)],
}));

const guard = [feature('feature:events'), permission('events:read')] as const;

/**
 * Operations over the peers' objects, in memory: the track measures the path from the request to the resolvers and
 * back.
 */
export const SAMPLE_OPERATIONS: readonly Operation[] = [
  query({
    name: 'broadcast',
    summary: 'One broadcast',
    rest: get('/v1/broadcasts/{id}'),
    guard,
    input: z.object({ id: z.string().max(100) }),
    output: Broadcast,
    run: async ({ input }) => BROADCASTS.find(({ id }) => id === input.id)!,
  }),
  query({
    name: 'broadcasts',
    summary: 'Broadcasts',
    rest: get('/v1/broadcasts'),
    pages: whole(),
    guard,
    input: z.object({ limit: z.int().min(1).max(100) }),
    output: Broadcast,
    run: async ({ input }) => BROADCASTS.slice(0, input.limit),
  }),
];

export const TYPE_DEFS = `
  type Person { id: String! displayName: String! avatarUrl: String }
  type Channel { id: String! name: String! followers: Int! owner: Person! }
  type Broadcast {
    id: String! title: String! viewers: Int! startedAt: String! live: Boolean! channel: Channel! moderators: [Person!]!
  }
  type Query { broadcast(id: String!): Broadcast broadcasts(limit: Int!): [Broadcast!]! }
`;

const FIELDS = `id title viewers startedAt live
  channel { id name followers owner { id displayName avatarUrl } }
  moderators { id displayName avatarUrl }`;

export const QUERIES = {
  one: { query: `query One($id: String!) { broadcast(id: $id) { ${FIELDS} } }`, variables: { id: 'broadcast-7' } },
  list: { query: `query List($limit: Int!) { broadcasts(limit: $limit) { ${FIELDS} } }`, variables: { limit: 25 } },
};

type Camel = Record<string, unknown>;
const toCamel = (name: string) => name.replace(/_(\w)/g, (_match, letter: string) => letter.toUpperCase());
const camel = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(camel);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [toCamel(name), camel(member)]));
};

const shown = BROADCASTS.map((one) => camel(one) as Camel);

export const RESOLVERS = {
  Query: {
    broadcast: async (_source: unknown, { id }: { id: string }) => shown.find((one) => one.id === id),
    broadcasts: async (_source: unknown, { limit }: { limit: number }) => shown.slice(0, limit),
  },
};

/** `data` that every server must answer. */
export const EXPECTED = {
  one: { broadcast: shown[7] },
  list: { broadcasts: shown },
};
