import { v4, v7 } from 'uuid';
import { FREE_PLAN_ID, PRO_PLAN_ID } from '../../domain/billing/plan-limits';
import { TOPICS } from '../../domain/common/records';
import { trimRebuilt } from '../../bin/upkeep/trim-rebuilt';
import { sweepEvents } from '../../maintenance/retention/events';
import { eventLog } from '../../projections/events/events';
import { rebuild } from '../../projections/runtime/rebuild/rebuild';
import { eventsPage } from '../../read-api/events/events-pages';
import { type TestDatabase, testDatabase } from '../support/database';
import { engines, record, runtimeOf, until } from '../support/projections';

const DAY_MS = 24 * 3_600_000;
const ago = (days: number) => Date.now() - days * DAY_MS;

let t: TestDatabase;
beforeEach(async () => {
  t = await testDatabase();
  await t.db.query(
    `insert into plans (id, slug, name, price_monthly, price_yearly, currency, is_public, sort_order, limits, created_at)
     values ($1, 'free', 'Free', 0, 0, 'eur', true, 1, '{"chat_retention_days": 7}', now()),
            ($2, 'pro', 'Pro', 0, 0, 'eur', true, 2, '{"chat_retention_days": 90}', now())`,
    [FREE_PLAN_ID, PRO_PLAN_ID],
  );
  await built(true);
});
afterEach(() => t.drop());

const built = (is_built: boolean) =>
  t.db.query(
    `insert into checkpoints (projection, source, partition, engine, version, position, built)
     values ('accounts', 'domain-events', 0, 'e', 1, '1', true), ('plans', 'domain-events', 0, 'e', 1, '1', $1)
     on conflict (projection, source, partition) do update set built = excluded.built`,
    [is_built],
  );

async function account({ plan, own }: { plan?: string; own?: number } = {}): Promise<string> {
  const id = v4();
  await t.db.query('insert into accounts (id, owner_id, created_at) values ($1, $1, now())', [id]);
  if (plan) await t.db.query('insert into account_plans values ($1, $2, now())', [id, plan]);
  if (own !== undefined)
    await t.db.query(`insert into account_limit_overrides values ($1, 'chat_retention_days', $2, now())`, [id, own]);
  return id;
}

/** Events as the projection leaves them: rows, and their counters. */
async function happened(account_id: string, events: readonly { days: number; id?: string }[]): Promise<void> {
  const stored = `insert into platform_event_logs (id, account_id, type, platform, raw, created_at)
    select id, $1, 'kick:' || case n % 2 when 0 then 'follower' else 'raid' end, 'kick', '{}', at
    from unnest($2::uuid[], $3::timestamptz[]) with ordinality as e (id, at, n)`;
  await t.db.query(stored, [
    account_id,
    events.map(({ id, days }) => id ?? v7({ msecs: ago(days) })),
    events.map(({ days }) => new Date(ago(days)).toISOString()),
  ]);
  await t.db.query(`insert into event_log_counters ${COUNTS} where account_id = '${account_id}' group by 1, 2, 3, 4`);
}
const COUNTS = `select account_id, type, platform, (created_at at time zone 'UTC')::date as day, count(*) from platform_event_logs`;

/** What callers see of an account; the counters tell of the rows that are there, and of no others. */
async function kept(account_id: string): Promise<number> {
  const nothing = { types: null, platforms: null, user_id: null, from: null, to: null, offset: 0 };
  const { total, rows } = await eventsPage(t.db, { account_id, ...nothing, limit: 10_000, max_bytes: 2 ** 40 });
  expect(rows).toHaveLength(total);
  const counted = `select account_id, type, platform, day, count from event_log_counters where account_id = $1 order by 1, 2, 3, 4`;
  const there = `${COUNTS} where account_id = $1 group by 1, 2, 3, 4 order by 1, 2, 3, 4`;
  expect(await t.db.query(counted, [account_id])).toEqual(await t.db.query(there, [account_id]));
  return total;
}

test('events go when the account has kept them as long as its own limit, its plan, or the free one says', async () => {
  const [free, pro, own, all, endless] = [
    await account(),
    await account({ plan: PRO_PLAN_ID }),
    await account({ plan: PRO_PLAN_ID, own: 2 }),
    await account({ own: 0 }),
    await account({ own: 2 ** 31 - 1 }),
  ];
  const accounts = [free, pro, own, all, endless];
  for (const id of accounts)
    await happened(
      id,
      [1, 3, 6.9, 7.1, 89, 91, 400].map((days) => ({ days })),
    );
  expect(await sweepEvents(t.db)).toBe(4 + 2 + 6);
  expect(await Promise.all(accounts.map(kept))).toEqual([3, 5, 1, 7, 7]);
  expect(await sweepEvents(t.db)).toBe(0);
});

test('what came late is kept from then on, and what its id does not tell of from when it happened', async () => {
  const id = await account();
  await happened(id, [
    { days: 30, id: v7({ msecs: ago(1) }) },
    { days: 30, id: v7({ msecs: ago(8) }) },
    { days: 30, id: v4() },
    { days: 1, id: v4() },
  ]);
  expect(await sweepEvents(t.db)).toBe(2);
  expect(await kept(id)).toBe(2);
});

test('any number of them goes, some in each transaction', async () => {
  const id = await account();
  await happened(
    id,
    Array.from({ length: 2500 }, (_, n) => ({ days: 8 + (n % 20), ...(n % 5 === 0 && { id: v7() }) })),
  );
  expect(await sweepEvents(t.db)).toBe(2000);
  expect(await kept(id)).toBe(500);
});

test('nothing goes while a read model that says how long is still built', async () => {
  const id = await account();
  await happened(id, [{ days: 100 }]);
  await built(false);
  expect(await sweepEvents(t.db)).toBe(0);
  await t.db.query('delete from checkpoints');
  expect(await sweepEvents(t.db)).toBe(0);
  expect(await kept(id)).toBe(1);
});

test('a rebuild leaves out what its account keeps no longer, rows and counters', async () => {
  const on = await engines(t.db);
  try {
    const id = await account();
    const at = (days: number) => {
      const when = new Date(ago(days)).toISOString();
      return { ...record(id, days), id: v7({ msecs: ago(days) }), occurred_at: when, received_at: when };
    };
    const sent = [1, 3, 8, 30].map(at);
    await on.records.append(TOPICS.platform_events, sent);
    const runtime = runtimeOf(t.db, on, [eventLog]);
    await runtime.start();
    await until(async () => (await t.db.query('select 1 from platform_event_logs')).length === sent.length);
    await runtime.stop();
    expect(await sweepEvents(t.db)).toBe(2);
    const options = { ...on, db: t.db, projections: [eventLog], name: eventLog.name };
    await rebuild(options);
    expect(await kept(id)).toBe(4);
    await rebuild({ ...options, trim: trimRebuilt });
    expect(await kept(id)).toBe(2);
  } finally {
    await on.close();
  }
});
