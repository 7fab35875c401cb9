import { z } from 'zod';
import {
  AUDIT_COLUMNS,
  AuditLogEntry,
  type AuditReading,
  type AuditRow,
  digestsOfRow,
  toEntryViews,
  type Viewer,
} from '../../views/audit/audit-log';
import { NO_HASH } from '../../views/audit/audit-hashes';
import { adminPermission, cursor, cut, firstParty, get, invalid, ndjson } from '../../app/operation';
import { notFound, permission, query, type Refuse } from '../../app/operation';
import { readInstant, readRange } from '../../lib/time/instants';

const filters = {
  action: z.string().max(100).nullish().describe('Exactly this action'),
  actor_id: z.string().max(200).nullish().describe('What this user or key did'),
  target_id: z.string().max(500).nullish().describe('What was done to this one'),
  from: readInstant('from').nullish().describe('ISO 8601: not before this'),
  to: readInstant('to').nullish().describe('ISO 8601: before this'),
};
const Filters = z.object(filters);
type Filters = z.output<typeof Filters>;
const errors = { ENDS_BEFORE_IT_BEGINS: invalid('from must not be after to') };

const Place = z.tuple([z.iso.datetime(), z.int(), z.uuid()]);
type Place = z.output<typeof Place>;
const pages = cursor(Place, 'AuditLogPage');
const chainOf = (kind: 'account' | 'user', id: string): string => `${kind}:${id}`;

/** Page of entries, newest first; `chain` null searches all chains. */
async function page(
  reading: AuditReading,
  { chain, viewer }: { chain: string | null; viewer: Viewer },
  asked: { input: Filters; page: { limit: number; after: Place | null }; refuse: Refuse<typeof errors> },
): Promise<{ items: AuditLogEntry[]; next: Place | null; key_of: (index: number) => Place }> {
  const { limit, after } = asked.page;
  const { from, to, reversed } = readRange(asked.input);
  if (reversed) throw asked.refuse('ENDS_BEFORE_IT_BEGINS');
  const values: unknown[] = [];
  const conditions: string[] = [];
  const only = (condition: (parameter: string) => string, value: unknown) => {
    if (value === null || value === undefined) return;
    values.push(value);
    conditions.push(condition(`$${values.length}`));
  };
  only((p) => `chain = ${p}`, chain);
  only((p) => `action = ${p}`, asked.input.action);
  only((p) => `actor_id = ${p}`, asked.input.actor_id);
  only((p) => `target_id = ${p}`, asked.input.target_id);
  only((p) => `created_at >= ${p}`, from);
  only((p) => `created_at < ${p}`, to);
  if (after !== null) {
    conditions.push(`(created_at, number, id) < ($${values.length + 1}, $${values.length + 2}, $${values.length + 3})`);
    values.push(...after);
  }
  const rows = await reading.db.query<AuditRow & Record<string, unknown>>(
    `select ${AUDIT_COLUMNS} from audit_log ${conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''}
     order by created_at desc, number desc, id desc limit ${limit + 1}`,
    values,
  );
  const found = cut(rows, limit, ({ created_at, number, id }): Place => [created_at, number, id]);
  return { ...found, items: await toEntryViews(reading, found.items, viewer) };
}

export const accountAuditLog = query({
  name: 'accountAuditLog',
  // Source: spec rulings, "audit entry".
  summary: 'What was done in the active account and by whom, newest first',
  rest: get('/v1/account/audit-log'),
  pages,
  guard: [permission('audit-log:read')],
  input: Filters,
  output: AuditLogEntry,
  errors,
  run(asked, services) {
    const { account_id } = asked.caller;
    return page(services, { chain: chainOf('account', account_id), viewer: { account_id } }, asked);
  },
});

export const meAuditLog = query({
  name: 'meAuditLog',
  summary: 'What was done to the caller as a user, newest first: logins, sessions, rights',
  rest: get('/v1/me/audit-log'),
  pages,
  guard: [firstParty],
  input: Filters,
  output: AuditLogEntry,
  errors,
  run(asked, services) {
    const { user_id } = asked.caller;
    return page(services, { chain: chainOf('user', user_id), viewer: { user_id } }, asked);
  },
});

export const adminAuditLog = query({
  name: 'adminAuditLog',
  summary: 'What was done in the whole installation and by whom, newest first',
  rest: get('/v1/admin/audit-log'),
  pages,
  guard: [adminPermission('audit-log:read')],
  input: z.object({ ...filters, account_id: z.uuid().nullish().describe('Only of this account') }),
  output: AuditLogEntry,
  errors,
  run(asked, services) {
    const { account_id } = asked.input;
    return page(services, { chain: account_id ? chainOf('account', account_id) : null, viewer: 'operator' }, asked);
  },
});

const AuditLogHead = z
  .object({
    hash: z.string().describe('Of the newest entry; 64 zeros before the first'),
    id: z.uuid().nullable().describe('Of the newest entry'),
    count: z.int().describe('How many entries there are'),
    position: z.string().nullable().describe('Of the newest entry in the log of domain events'),
  })
  .meta({ id: 'AuditLogHead' });

export const accountAuditLogHead = query({
  name: 'accountAuditLogHead',
  summary:
    "Where the chain of the active account's audit log ends: kept outside, it shows later whether it was changed",
  rest: get('/v1/account/audit-log/head'),
  guard: [permission('audit-log:read')],
  input: z.object({}),
  output: AuditLogHead,
  async run({ caller }, { db }) {
    const [head] = await db.query<z.output<typeof AuditLogHead>>(
      `select h.hash, l.id, h.number as count, l.position
       from audit_log_heads h left join audit_log l on l.chain = h.chain and l.number = h.number where h.chain = $1`,
      [chainOf('account', caller.account_id)],
      'audit-log-head',
    );
    return head ?? { hash: NO_HASH, id: null, count: 0, position: null };
  },
});

/** An entry with all inputs of its hash. */
const AuditLogLine = AuditLogEntry.extend({
  chain: z.string(),
  number: z.int().describe('Place in the chain, from 1'),
  type: z.string().describe('Of the domain event'),
  position: z.string().describe('In the log of domain events'),
  previous_hash: z.string().describe('Of the entry before; 64 zeros before the first'),
  digests: z
    .record(z.string(), z.string())
    .describe('What stands for personal values in the hash, by place: `ip`, `before.<member>`, `after.<member>`'),
}).meta({ id: 'AuditLogLine' });

/** Rows per read of a stream; no database resource is held in between. */
const STREAMED_ROWS = 500;

export const streamAccountAuditLog = query({
  name: 'streamAccountAuditLog',
  summary: "The active account's audit log from the beginning or after an entry, oldest first, with its chain",
  rest: get('/v1/account/audit-log/stream'),
  graphql: null,
  sends: ndjson(),
  guard: [permission('audit-log:read')],
  input: z.object({ after: z.uuid().nullish().describe('Id of the last entry that the caller has') }),
  output: AuditLogLine,
  errors: { ENTRY_NOT_FOUND: notFound('Audit log entry not found') },
  async run({ input: { after }, caller, refuse }, services) {
    const { account_id } = caller;
    const chain = chainOf('account', account_id);
    const begin = { number: 0, hash: NO_HASH };
    if (!after) return linesAfter(services, account_id, begin);
    const [last] = await services.db.query<typeof begin>(
      'select number, hash from audit_log where id = $1 and chain = $2',
      [after, chain],
      'audit-log-after',
    );
    if (!last) throw refuse('ENTRY_NOT_FOUND');
    return linesAfter(services, account_id, last);
  },
});

async function* linesAfter(
  reading: AuditReading,
  account_id: string,
  last: { number: number; hash: string },
): AsyncGenerator<z.output<typeof AuditLogLine>> {
  const chain = chainOf('account', account_id);
  for (let { number: at, hash: previous_hash } = last; ;) {
    const rows = await reading.db.query<AuditRow & Record<string, unknown>>(
      `select ${AUDIT_COLUMNS} from audit_log where chain = $1 and number > $2 order by number limit ${STREAMED_ROWS}`,
      [chain, at],
      'audit-log-stream',
    );
    const shown = await toEntryViews(reading, rows, { account_id });
    for (const [index, row] of rows.entries()) {
      const { number, type, position, hash } = row;
      yield { ...shown[index]!, chain, number, type, position, previous_hash, digests: digestsOfRow(row) };
      previous_hash = hash;
      at = number;
    }
    if (rows.length < STREAMED_ROWS) return;
  }
}
