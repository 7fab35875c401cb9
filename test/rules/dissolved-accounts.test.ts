import { randomUUID } from 'node:crypto';
import { PROJECTIONS } from '../../bin/areas';
import { sweepDissolved, SWEPT_TABLES } from '../../maintenance/retention/dissolved-accounts';
import { testDatabase, type TestDatabase } from '../support/database';

/** Read models that follow the dissolution. */
const OF_PROJECTIONS = PROJECTIONS.filter(
  ({ from }) => from.kind === 'domain_events' && from.types.includes('account:dissolved'),
).flatMap(({ tables }) => tables);

/** Other tables with an account, and what ends their rows. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  'a reactor to the dissolution': [
    'account_schedules',
    'active_service_keys',
    'automation_webhook_failures',
    'bot_command_user_uses',
    'bot_module_acts',
    'bound_tokens',
    'credential_origins',
    'discord_posts',
    'discord_slash_commands',
    'login_places',
    'member_tokens',
    'memberships_to_end',
    'sounds',
    'uploads',
  ],
  'a projection of the dissolution, whose rows no rebuild makes': ['automation_variables'],
  'the end of the connection or session': [
    'adapter_links',
    'connection_grants',
    'live_session_figures',
    'pending_session_merges',
    'session_claims',
    'session_row_counts',
  ],
  'their time': ['oauth_codes', 'oauth_states', 'revocations', 'running_exports'],
  'the developer or user, who keeps them': ['oauth_clients', 'oauth_grants'],
  'nothing: the logs and their places stay': ['account_events', 'audit_log', 'dead_letters', 'ledger', 'ledger_bodies'],
  'nothing: the fact itself': ['dissolved_accounts'],
};

let t: TestDatabase;
beforeAll(async () => void (t = await testDatabase()));
afterAll(() => t.drop());

const columnsOf = (table: string) =>
  t.db.query<{ name: string; type: string }>(
    `select attname as name, format_type(atttypid, null) as type from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and attnotnull and not attisdropped and attidentity = '' and not atthasdef`,
    [table],
  );

const VALUES: Readonly<Record<string, () => unknown>> = {
  uuid: randomUUID,
  text: randomUUID,
  'text[]': () => [],
  'uuid[]': () => [],
  bigint: () => 1,
  integer: () => 1,
  boolean: () => false,
  date: () => '2026-01-01',
  'timestamp with time zone': () => new Date().toISOString(),
  json: () => '{}',
  jsonb: () => '{}',
};

async function insert(table: string, account_id: string): Promise<void> {
  const columns = await columnsOf(table);
  const values = columns.map(({ name, type }) => (name === 'account_id' ? account_id : VALUES[type]!()));
  const places = values.map((_, n) => `$${n + 1}`);
  await t.db.query(
    `insert into ${table} (${columns.map(({ name }) => name).join()}) values (${places.join()})`,
    values,
  );
}

test('every table with rows of accounts is swept, or something else ends them', async () => {
  const tables = await t.db.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid
     where a.attname = 'account_id' and c.relkind in ('r', 'p') and not c.relispartition
       and c.relnamespace = 'public'::regnamespace order by 1`,
  );
  const names = tables.map(({ name }) => name);
  const others = Object.values(OTHERS).flat();
  const known: string[] = [...SWEPT_TABLES, ...OF_PROJECTIONS, ...others];
  expect(names.filter((name) => !known.includes(name))).toEqual([]);
  expect([...SWEPT_TABLES, ...others].filter((name) => !names.includes(name))).toEqual([]);
});

test('the rows of a dissolved account are swept, and those of no other', async () => {
  const [dissolved, other] = [randomUUID(), randomUUID()];
  await t.db.query('insert into dissolved_accounts (account_id) values ($1)', [dissolved]);
  for (const table of SWEPT_TABLES) for (const account_id of [dissolved, other]) await insert(table, account_id);
  expect(await sweepDissolved(t.db)).toBe(SWEPT_TABLES.length);
  for (const table of SWEPT_TABLES)
    expect(await t.db.query(`select account_id from ${table}`)).toEqual([{ account_id: other }]);
  expect(await sweepDissolved(t.db)).toBe(0);
});
