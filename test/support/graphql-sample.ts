import { z } from 'zod';
import type { Caller, RequestContext } from '../../access/authentication/caller';
import { publicAccess } from '../../access/authorization/guards';
import { command, query, type Operation } from '../../app/operation';
import { get, patch, post } from '../../kernel/operations/routes';
import type { Services } from '../../app/services';
import { buildGraphqlSchema } from '../../api/graphql/schema';
import { prepare } from '../../api/rest/invoke';
import type { RequestState } from '../../api/http/requests/request-state';
import { numbered, whole } from '../../kernel/operations/pages';
import { ApiError } from '../../kernel/errors';

/** Every kind of input and output that operations have, on operations that tell what reached them. */
const Mood = z.enum(['very_good', 'bad']).meta({ id: 'Mood' });
const Inner = z
  .strictObject({
    label: z.string(),
    weight: z.number().optional(),
    tags: z.array(z.string()).optional(),
    more: z.unknown().optional(),
  })
  .meta({ id: 'InnerInput' });
const members = {
  text: z.string().nullable().optional(),
  count: z.int().optional(),
  ratio: z.number().optional(),
  flag: z.boolean().optional(),
  mood: Mood.optional(),
  labels: z.array(z.string()).optional(),
  ids: z.array(z.uuid()).optional(),
  inner: Inner.optional(),
  inners: z.array(Inner).optional(),
  raw: z.unknown().optional(),
};

const Leaf = z.object({ name: z.string(), size: z.int().nullable() }).meta({ id: 'Leaf' });
const Thing = z
  .object({
    id: z.string(),
    text: z.string().nullable(),
    mood: Mood.nullable(),
    raw: z.unknown(),
    leaf: Leaf,
    maybe: Leaf.nullable(),
    leaves: z.array(Leaf),
    holes: z.array(Leaf.nullable()).nullable(),
  })
  .meta({ id: 'Thing' });

const Round = z.object({ kind: z.literal('round'), radius: z.number(), label: z.string() }).meta({ id: 'Round' });
const Square = z.object({ kind: z.literal('square'), side: z.int(), inside: Leaf.nullable() }).meta({ id: 'Square' });
const Shape = z.discriminatedUnion('kind', [Round, Square]).meta({ id: 'Shape' });
/** One of each kind of output that {@link Thing} has not. */
const Drawing = z
  .object({
    drawing_id: z.uuid(),
    drawn_at: z.iso.datetime().nullable(),
    bytes: z.int().max(Number.MAX_SAFE_INTEGER),
    ratio: z.number().nullable(),
    live: z.boolean(),
    moods: z.array(Mood.nullable()),
    grid: z.array(z.array(z.int())),
    shape: Shape,
  })
  .meta({ id: 'Drawing' });

/** A record that fits its type. */
export const drawing = () => ({
  drawing_id: '0197f3a0-0000-7000-8000-000000000001',
  drawn_at: '2026-08-01T11:00:00Z' as string | null,
  bytes: 2 ** 40,
  ratio: 0.25 as number | null,
  live: true,
  moods: ['bad' as const, null],
  grid: [[1, 2], []],
  shape: { kind: 'round' as const, radius: 1e21, label: 'a "round" one' } as z.input<typeof Shape>,
});

/** What reached the operations, in order. */
export type Effects = [operation: string, input: unknown][];

const leaf = (name: string | null) => ({ name, size: name === 'big' ? 1.5 : 7 }) as { name: string; size: number };

/** `text` says what goes wrong: `fail` throws, `null` and `big` and `list` break the promise of the output's type. */
export function thing(input: Record<string, unknown>) {
  const { text, raw, mood } = input;
  if (text === 'fail') throw new ApiError('CONFLICT', 'It failed', { details: { of: 'the test' } });
  if (text === 'broken') throw new Error('secret');
  return {
    id: 'thing-1',
    text: typeof text === 'string' ? text : null,
    mood: (text === 'mood' ? 'no mood' : (mood ?? null)) as 'bad' | null,
    raw: raw === undefined ? { nothing: true } : raw,
    leaf: leaf(text === 'null' ? null : 'a'),
    maybe: text === 'big' ? leaf('big') : text === 'null' ? leaf(null) : null,
    leaves: text === 'list' ? [leaf('a'), leaf(null)] : [leaf('a'), leaf('b')],
    holes: text === 'list' ? [null, leaf(null), leaf('c')] : [null, leaf('c')],
  };
}

/** What `odd` and `odds` answer: a record, or a page of them. */
export interface Odd {
  one(): unknown;
  page(): unknown;
}

function operationsOf(effects: Effects, odd: Odd): readonly Operation[] {
  const told = (operation: string, input: unknown) => {
    // Told as text: what an operation or a later call does to the object must not change what was seen.
    effects.push([operation, JSON.parse(JSON.stringify(input))]);
    return thing(input as Record<string, unknown>);
  };
  return [
    query({
      name: 'thing',
      summary: 'One',
      rest: get('/v1/thing'),
      guard: [publicAccess],
      input: z.strictObject(members),
      output: Thing,
      run: async ({ input }) => told('thing', input),
    }),
    query({
      name: 'perhaps',
      summary: 'One that may be null',
      rest: get('/v1/perhaps'),
      graphql: { argument: 'filter' },
      guard: [publicAccess],
      input: z.strictObject(members),
      output: Thing.nullable(),
      run: async ({ input }) => (input.text === 'nothing' ? null : told('perhaps', input)),
    }),
    query({
      name: 'things',
      summary: 'Many',
      rest: get('/v1/things'),
      pages: numbered('PaginatedThingResult', { items: 2 }),
      graphql: { argument: 'filter' },
      guard: [publicAccess],
      input: z.strictObject({ text: members.text, raw: members.raw }),
      output: Thing,
      run: async ({ input }) => ({ items: [told('things', input), thing({})], total: 2 }),
    }),
    query({
      name: 'drawings',
      summary: 'Many, without a page around them',
      rest: get('/v1/drawings'),
      pages: whole(),
      guard: [publicAccess],
      input: z.strictObject({}),
      output: Drawing,
      run: async () => [drawing(), { ...drawing(), shape: { kind: 'square' as const, side: 2, inside: leaf('b') } }],
    }),
    query({
      name: 'odd',
      summary: 'Whatever a test puts there',
      rest: get('/v1/odd'),
      guard: [publicAccess],
      input: z.strictObject({}),
      output: z.object({ thing: Thing, drawing: Drawing.nullable() }).meta({ id: 'Odd' }).nullable(),
      run: async () => odd.one() as never,
    }),
    query({
      name: 'odds',
      summary: 'A page of it',
      rest: get('/v1/odds'),
      pages: numbered('PaginatedOddResult'),
      guard: [publicAccess],
      input: z.strictObject({}),
      output: Drawing,
      run: async () => odd.page() as never,
    }),
    command({
      name: 'makeThing',
      summary: 'Makes one',
      rest: post('/v1/things', { status: 201 }),
      graphql: { argument: 'input' },
      guard: [publicAccess],
      input: z.strictObject({ ...members, count: z.int() }),
      output: Thing,
      run: async ({ input }) => told('makeThing', input),
    }),
    command({
      name: 'changeThing',
      summary: 'Changes one',
      rest: patch('/v1/things/{id}'),
      graphql: { argument: 'input', flat_arguments: ['id'] },
      guard: [publicAccess],
      input: z.strictObject({ id: z.string(), ...members }),
      output: Thing.nullable(),
      run: async ({ input }) => told('changeThing', input),
    }),
  ];
}

/** The schema of these operations, and what has reached them. */
export function graphqlSample(effects: Effects = [], odd: Odd = { one: () => null, page: () => null }) {
  const services = {} as Services;
  return { effects, schema: buildGraphqlSchema(operationsOf(effects, odd).map((one) => prepare(one, services))) };
}

export const sampleState = (): RequestState => ({
  caller: { kind: 'anonymous', rate_limit: null } as unknown as Caller,
  failure: null,
  context: { correlation_id: 'test', trace: null, ip: '::1', now: 0, idempotency_seed: null } as RequestContext,
});
