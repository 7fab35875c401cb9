import { v7 as uuid } from 'uuid';
import { createLinkLeases, type LinkFence } from '../ingest/runtime/link-leases';
import { type TestDatabase, testDatabase } from './support/database';

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

test('who takes a connection learns how long ago it was given away, also by one who never had it open', async () => {
  const leases = createLinkLeases(t.db, { lock: 1 });
  const connection = { connection_id: uuid(), account_id: uuid(), channel_id: '1' };
  const take = () => leases.take('twitch', connection);
  const first = await take();
  expect(first.given_away_ms_ago).toBeNull();
  await leases.report(first.fence, { given_away: true });
  const second = await take();
  expect(second.given_away_ms_ago).toBeGreaterThanOrEqual(0);
  await leases.report(second.fence, { given_away: true, given_away_ms_ago: 3_000 });
  expect((await take()).given_away_ms_ago).toBeGreaterThanOrEqual(3_000);
  expect((await take()).given_away_ms_ago).toBeNull();
});
