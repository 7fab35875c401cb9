import { z } from 'zod';
import type { Caller, CallerKind } from '../../access/authentication/caller';
import {
  feature,
  firstParty,
  permission,
  publicAccess,
  systemKeyOnly,
  userPermission,
} from '../../access/authorization/guards';
import { command, query, type Operation } from '../../app/operation';
import { del, get, patch, post } from '../../kernel/operations/routes';
import { SettingsSchema } from '../../kernel/settings/settings';
import type { Services } from '../../app/services';
import { createApi, type Api } from '../../api/server';
import { numbered, whole } from '../../kernel/operations/pages';
import { conflict, forbidden, notFound } from '../../kernel/operations/errors';
import { RawJson } from '../../lib/json/raw-json';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { ProcessSession } from '../../engines/postgres/process-session';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { createLocalRateLimits } from '../../engines/rate-limits/local';
import { silentLog } from './log';

/** A note as the sample operations keep it: every kind of member that the front door has to translate. */
const Mood = z.enum(['very_good', 'bad']).meta({ id: 'Mood' });
const Tag = z.object({ tag_name: z.string(), weight: z.number() }).meta({ id: 'Tag' });
const Note = z
  .object({
    id: z.uuid(),
    note_text: z.string(),
    mood: Mood.nullable(),
    type: z.string(),
    size_bytes: z.int().max(Number.MAX_SAFE_INTEGER),
    raw: z.unknown(),
    tags: z.array(Tag),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Note' });

const NoteFilter = z
  .strictObject({
    types: z.array(z.string()).optional(),
    starred: z.boolean().optional(),
  })
  .meta({ id: 'NoteFilterInput' });
const NewNote = z
  .strictObject({
    note_text: z.string().trim().min(1).max(200),
    mood: Mood.optional(),
    raw: z.record(z.string(), z.unknown()).default({}),
  })
  .meta({ id: 'NewNoteInput' });

export const VENDOR_TEXT = '{"id": 820982911946154508,  "b":1.50}';
const ID = '0197f3a0-0000-7000-8000-000000000001';
const note = (changes: Record<string, unknown> = {}) => ({
  id: ID,
  note_text: 'hello',
  mood: 'very_good' as const,
  type: 'kick:follower',
  size_bytes: 5_000_000_000,
  raw: new RawJson(VENDOR_TEXT),
  tags: [{ tag_name: 'a', weight: 1.5 }],
  created_at: '2026-01-02T03:04:05Z',
  ...changes,
});

const CLOSED = 'Account creation is currently disabled';
let made = 0;
const guard = [feature('feature:notes'), permission('notes:read')] as const;
const shape = { renamed: { noteType: 'type' } };

export const sampleOperations: readonly Operation[] = [
  query({
    name: 'notes',
    summary: 'Notes of the account. doc2 §0.',
    rest: get('/v1/notes'),
    pages: numbered('PaginatedNoteResult', { pages: 1_000_000_000 }),
    graphql: { argument: 'filter', ...shape },
    guard,
    input: NoteFilter,
    output: Note,
    run: async ({ input, page: { page, limit } }) => ({
      items: Array.from({ length: Math.min(limit, 25) }, () =>
        note({ note_text: JSON.stringify({ ...input, page, limit }) }),
      ),
      total: 60,
    }),
  }),
  query({
    name: 'note',
    summary: 'One note. doc2 §0.',
    rest: get('/v1/notes/{id}'),
    graphql: shape,
    guard,
    input: z.strictObject({ id: z.uuid() }),
    output: Note,
    errors: { NOTE_NOT_FOUND: notFound('Note not found') },
    run: async ({ input, refuse }) => {
      if (input.id !== ID) throw refuse('NOTE_NOT_FOUND');
      return note();
    },
  }),
  command({
    name: 'createNote',
    summary: 'Makes a note. doc2 §0.',
    rest: post('/v1/notes', { status: 201, location: ({ id }: { id: string }) => `/v1/notes/${id}` }),
    graphql: { argument: 'input', ...shape },
    guard: [permission('notes:create')],
    input: NewNote,
    output: Note,
    errors: {
      NOTE_EXISTS: conflict('Note already exists', { shows: ['made'] }),
      CREATION_CLOSED: forbidden(CLOSED, {
        rest_body: { error: CLOSED, error_code: 'account_creation_disabled' },
        graphql_code: 'ACCOUNT_CREATION_DISABLED',
      }),
    },
    run: async ({ input, context, refuse }, { db }) => {
      if (input.note_text === 'behind a lock') await db.query('select pg_advisory_xact_lock_shared(4711)');
      if (input.note_text === 'slow') await new Promise((resolve) => setTimeout(resolve, 300));
      if (input.note_text === 'taken') throw refuse('NOTE_EXISTS', { made });
      if (input.note_text === 'closed') throw refuse('CREATION_CLOSED');
      if (input.note_text === 'broken') throw new Error('secret detail');
      made += 1;
      return note({
        note_text: `${input.note_text} ${made}`,
        mood: input.mood ?? null,
        raw: { ...input.raw, seed: context.idempotency_seed },
      });
    },
  }),
  command({
    name: 'refreshNotes',
    summary: 'Takes no input.',
    rest: post('/v1/notes/refresh', { envelope: 'bare' }),
    guard: [permission('notes:edit')],
    input: z.strictObject({}),
    output: z.object({ success: z.boolean() }).meta({ id: 'RefreshNotesResult' }),
    run: async () => ({ success: true }),
  }),
  query({
    name: 'moods',
    summary: 'A list of one page.',
    rest: get('/v1/moods'),
    pages: whole(),
    guard,
    input: z.strictObject({}),
    output: Tag,
    run: async () => [{ tag_name: 'a', weight: 1 }],
  }),
  command({
    name: 'updateNote',
    summary: 'Changes a note. doc2 §0.',
    rest: patch('/v1/notes/{id}'),
    graphql: { argument: 'input', flat_arguments: ['id'], ...shape },
    guard: [firstParty, permission('notes:edit')],
    input: z.strictObject({ id: z.uuid(), note_text: z.string().nullable() }).meta({ id: 'UpdateNoteInput' }),
    output: Note,
    run: async ({ input }) => note({ id: input.id, note_text: String(input.note_text) }),
  }),
  command({
    name: 'deleteNote',
    summary: 'Removes a note. doc2 §0.',
    rest: del('/v1/notes/{id}'),
    guard: [permission('notes:delete')],
    input: z.strictObject({ id: z.uuid() }),
    output: z.object({ success: z.boolean() }).meta({ id: 'DeleteNoteResult' }),
    run: async () => ({ success: true }),
  }),
  query({
    name: 'serverTime',
    summary: 'For anyone. doc2 §0.',
    rest: get('/v1/server-time', { envelope: 'bare' }),
    guard: [publicAccess],
    input: z.strictObject({}),
    output: z.object({ time: z.string() }).meta({ id: 'ServerTime' }),
    run: async () => ({ time: '2026-01-02T03:04:05Z' }),
  }),
  query({
    name: 'failingDatabase',
    summary: 'Asks the database what it does not know. doc2 §0.',
    rest: get('/v1/failing-database', { envelope: 'bare' }),
    guard: [publicAccess],
    input: z.strictObject({}),
    output: z.object({ time: z.string() }).meta({ id: 'ServerTime' }),
    run: async (_request, { db }) => {
      await db.query('select secret_detail from nowhere');
      return { time: '' };
    },
  }),
  query({
    name: 'systemStatus',
    summary: 'For system keys. doc2 §0.',
    rest: get('/v1/system-status', { envelope: 'bare' }),
    guard: [systemKeyOnly, userPermission('ideas:read')],
    input: z.strictObject({}),
    output: z.object({ time: z.string() }).meta({ id: 'ServerTime' }),
    run: async () => ({ time: '' }),
  }),
];

/**
 * `Authorization: Bearer <kind>[:<permissions by +>][:<requests a minute>]` says who calls: the sample has no
 * identities.
 */
function sampleCaller(authorization: string | undefined, account: string | undefined, ip: string): Caller {
  const [kind = 'anonymous', granted = '', rate = ''] = (authorization ?? '').replace(/^Bearer /, '').split('|');
  const permissions = new Set(granted === '' ? [] : granted.split('+'));
  return {
    kind: (kind === '' ? 'anonymous' : kind) as CallerKind,
    user_id: kind === 'jwt' ? 'user-1' : null,
    account_id: kind === 'system_key' ? (account ?? null) : 'account-1',
    credential_id: `${kind}-1`,
    permissions,
    admin_permissions: new Set(),
    user_permissions: permissions,
    rate_bucket: kind === '' ? `ip:${ip}` : `${kind}:${granted}:${rate}`,
    rate_limit: rate === '' ? null : Number(rate),
    expires_at: null,
  };
}

export async function sampleApi(
  databaseUrl: string,
  env: Record<string, unknown> = {},
): Promise<Api & { url: string }> {
  const settings = SettingsSchema.parse({ port: 0, allowed_origins: ['https://app.example'], ...env });
  const db = new PostgresDatabase({ url: databaseUrl, name: 'api test', size: 5 });
  const session = new ProcessSession({ connectionString: databaseUrl }, silentLog);
  await session.ready();
  const services = {
    db,
    settings,
    features: { enabled: async (_flag: string, account: string | null) => account !== 'account-off' },
  } as unknown as Services;
  const metrics = createPrometheusMetrics({ service: 'lumio', env: 'test' });
  const api = await createApi({
    settings,
    operations: sampleOperations,
    services,
    resolveCaller: async ({ headers, ip }) => ({
      failure: headers.authorization === 'Bearer expired' ? 'TOKEN_EXPIRED' : null,
      caller: sampleCaller(
        (headers.authorization === 'Bearer expired' ? undefined : headers.authorization) ??
          (headers.cookie === undefined ? undefined : 'popout|notes:read+notes:create'),
        headers['x-lumio-account'] as string | undefined,
        ip,
      ),
    }),
    holder: session,
    rate_limits: createLocalRateLimits(),
    webhooks: [
      {
        method: 'POST',
        path: '/v1/webhooks/sample',
        described: true,
        async handle({ raw_body, headers }) {
          if (headers['x-signature'] !== 'good') return { status: 401, body: '{"error":"UNAUTHORIZED"}' };
          if (raw_body.toString() === 'database away')
            await new PostgresDatabase({ url: 'postgres://127.0.0.1:1/x', name: 'away' }).query('select 1');
          return { status: 200, body: String(raw_body.length), content_type: 'text/plain' };
        },
      },
    ],
    health: {
      checks: [{ name: 'database', check: async () => ({ status: 'healthy', latency_ms: 1 }) }],
      websocket: () => ({ sessions: 3, channels: 2 }),
    },
    metrics,
    log: silentLog,
    version: '1.2.3',
  });
  return { ...api, url: await api.listen() };
}

/**
 * As a process of its own: prints its origin, and ends with its standard input; when told to stand still, its port is
 * closed then, and nothing else of its end has happened.
 */
if (require.main === module) {
  const [, , databaseUrl = '', env = '{}', stands_still] = process.argv;
  void sampleApi(databaseUrl, JSON.parse(env) as Record<string, unknown>).then(({ url, close }) => {
    process.stdout.write(`${url}\n`);
    process.stdin.resume();
    process.stdin.on('end', () => {
      void close().then(() => process.exit(0));
      // Behind the turn in which the port is closed.
      if (stands_still) setImmediate(() => process.kill(process.pid, 'SIGSTOP'));
    });
  });
}
