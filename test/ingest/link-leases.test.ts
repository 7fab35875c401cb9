import { v7 as uuid } from 'uuid';
import type { Queryable } from '../../engines/postgres/port';
import { createLinkLeases, type LinkFence } from '../../ingest/runtime/connection/link-leases';
import { type TestDatabase, testDatabase } from '../support/database';

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase();
});
afterAll(() => t.drop());

test.each([['\0'], ['\ud83d']])(
  'what a vendor made unstorable fails neither its own report nor the others’',
  async (id) => {
    const leases = createLinkLeases(t.db, { lock: 1 });
    const take = () => leases.take('twitch', { connection_id: uuid(), account_id: uuid(), channel_id: '1' });
    const [odd, plain] = [await take(), await take()];
    const reports = [
      leases.report(odd.fence, { state: { poll: id, [id]: 1 }, status: 'degraded', detail: `Twitch says ${id}` }),
      leases.report(plain.fence, { state: { poll: 'p' } }),
    ];
    expect(await Promise.all(reports)).toEqual([true, true]);
    const rows = await t.db.query('select state from adapter_links where link = any ($1) order by token', [
      [odd.fence.link, plain.fence.link],
    ]);
    expect(rows).toEqual([{ state: { poll: '\ufffd', '\ufffd': 1 } }, { state: { poll: 'p' } }]);
  },
);

test('of many leases those are current that nobody has taken since, and that are still there', async () => {
  const leases = createLinkLeases(t.db, { lock: 1 });
  const connections = Array.from({ length: 4 }, () => ({ connection_id: uuid(), account_id: uuid(), channel_id: '1' }));
  const taken = [];
  for (const connection of connections) taken.push((await leases.take('twitch', connection)).fence);
  const [kept, retaken, forgotten, last] = taken as [LinkFence, LinkFence, LinkFence, LinkFence];
  expect(await leases.current(taken)).toEqual(new Set(taken));
  const { fence: after } = await leases.take('twitch', connections[1]!);
  await leases.forget(forgotten);
  expect(await leases.current([retaken, kept, after, forgotten, last])).toEqual(new Set([kept, after, last]));
  expect(await leases.current([retaken])).toEqual(new Set());
});

const connection = () => ({ connection_id: uuid(), account_id: uuid(), channel_id: '1' });

test('who takes a connection learns how long the holder before reads on', async () => {
  const leases = createLinkLeases(t.db, { lock: 1 });
  const one = connection();
  const take = () => leases.take('twitch', one);
  const first = await take();
  expect(first.reads_on_until).toBeNull();
  const until = performance.now() + 60_000;
  await leases.report(first.fence, { reads_on_until: until });
  // Never taken for longer than it was announced, however slow the database is.
  const second = await take();
  expect(second.reads_on_until).toBeGreaterThan(until - 30_000);
  expect(second.reads_on_until).toBeLessThanOrEqual(until + 1);
  expect((await take()).reads_on_until).toBeNull();
  const third = await take();
  await leases.report(third.fence, { reads_on_until: until });
  await leases.report(third.fence, { reads_on_until: null });
  expect((await take()).reads_on_until).toBeNull();
});

test.each([
  ['ahead of', 3_600_000, false],
  ['ahead of', 3_600_000, true],
  ['behind', -3_600_000, true],
])(
  'after a failover from a clock %s the new one (%s ms) the announced time is that of the new one',
  async (_, shift_ms, is_asked) => {
    const before = {
      async query(text: string, values?: unknown[], name?: string) {
        const rows = await t.db.query(text, values, name);
        return name === 'adapter-link-take' ? rows.map((row) => ({ ...row, now_ms: row.now_ms + shift_ms })) : rows;
      },
    } as Queryable;
    const one = connection();
    const leases = createLinkLeases(before, { lock: 1 });
    const { fence } = await leases.take('twitch', one);
    if (is_asked) await leases.current([fence]);
    const until = performance.now() + 60_000;
    await leases.report(fence, { reads_on_until: until });
    const { reads_on_until } = await createLinkLeases(t.db, { lock: 2 }).take('twitch', one);
    expect(reads_on_until).toBeGreaterThan(until - 30_000);
    expect(reads_on_until).toBeLessThan(until + 30_000);
  },
);

describe('beside the previous release, which knows when a connection was given away and reads on for 4 s', () => {
  /** The moment at which one of its processes takes the former holder's reading for ended, in ms from now. */
  const older = async ({ link }: LinkFence) => {
    const [row] = await t.db.query<{ ms: number }>(
      `update adapter_links set token = token + 1, given_away_at = null where link = $1
       returning 4000 - (select extract(epoch from clock_timestamp() - given_away_at) * 1000 from adapter_links
         where link = $1)::float8 as ms`,
      [link],
    );
    return row!.ms;
  };

  test.each([
    [1_500, 1_500],
    [20_000, 4_000],
  ])('an announced time of %s ms counts there for %s ms at most', async (promised, most) => {
    const leases = createLinkLeases(t.db, { lock: 1 });
    const { fence } = await leases.take('twitch', connection());
    await leases.report(fence, { reads_on_until: performance.now() + promised });
    expect(await older(fence)).toBeLessThanOrEqual(most);
  });

  test('its own announcement counts for 4 s, whatever a holder before it announced', async () => {
    const leases = createLinkLeases(t.db, { lock: 1 });
    const one = connection();
    const { fence } = await leases.take('twitch', one);
    await leases.report(fence, { reads_on_until: performance.now() + 60_000 });
    await older(fence);
    await t.db.query('update adapter_links set given_away_at = clock_timestamp() where link = $1', [fence.link]);
    const { reads_on_until } = await leases.take('twitch', one);
    expect(reads_on_until).toBeLessThanOrEqual(performance.now() + 4_000);
  });
});

test('a thousand links that are handed over ask for their successors in one statement', async () => {
  const texts: string[] = [];
  const counted = {
    query: (text: string, values?: unknown[], name?: string) => {
      texts.push(text);
      return t.db.query(text, values, name);
    },
  } as Queryable;
  const taking = createLinkLeases(t.db, { lock: 1 });
  const leases = createLinkLeases(counted, { lock: 1 });
  const twitch = connection();
  const [mine, theirs] = [
    (await taking.take('twitch', twitch)).fence,
    (await taking.take('trovo', connection())).fence,
  ];
  const absent = { link: 'twitch:gone', token: 1 };
  const opened = await taking.take('twitch', twitch);
  await taking.report(opened.fence, { state: { page: 3 }, beginning: { page: 2 } });
  await t.db.query("insert into work_members values (gen_random_uuid(), 2, '{}', clock_timestamp(), '{twitch}')");
  const fences = [mine, theirs, absent, ...Array.from({ length: 997 }, () => opened.fence)];
  const found = await Promise.all(fences.map((fence) => leases.successor(fence)));
  expect(found.slice(0, 4)).toEqual([
    { taken: true, wanted: true, state: { page: 3 }, beginning: { page: 2 } },
    { taken: false, wanted: false },
    { taken: true, wanted: true },
    { taken: false, wanted: true },
  ]);
  expect(texts).toHaveLength(1);
});
