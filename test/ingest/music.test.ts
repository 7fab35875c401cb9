import type { Queryable } from '../../engines/postgres/port';
import { music } from '../../realtime/control/music';
import { testDatabase, type TestDatabase } from '../support/database';
import { uuid } from '../support/identity';

const [ACCOUNT, OTHER] = [uuid(1), uuid(2)];
let t: TestDatabase;
beforeAll(async () => void (t = await testDatabase()));
afterAll(() => t.drop());

/** What a new subscriber of an account's channel is sent. */
async function shownTo(account_id: string, db: Pick<Queryable, 'query'>): Promise<unknown[]> {
  const sent: unknown[] = [];
  const subscriber = {
    channel_id: account_id,
    send: (_type: string, text: string) => void sent.push(JSON.parse(text)),
  };
  await music.bootstrap!(subscriber as never, { db } as never);
  return sent;
}

test('a subscriber is shown the player of the account’s connection, found by an index', async () => {
  for (const [n, account_id] of [ACCOUNT, OTHER].entries()) {
    await t.db.query(
      `insert into channel_connections (id, account_id, platform, platform_channel_id, connected_at)
       values ($1, $2, 'spotify', $3, now())`,
      [uuid(10 + n), account_id, `player-${n}`],
    );
    await t.db.query(
      `insert into adapter_links (link, vendor, connection_id, account_id, token, holder, status, status_at, heard_at,
                                  state)
       values ('spotify:' || $1, 'spotify', $1, $2, 1, gen_random_uuid(), 'connected', now(), clock_timestamp(), $3)`,
      [uuid(10 + n), account_id, { seen: { at: 0 }, shown: { is_playing: false, item: { name: `track ${n}` } } }],
    );
  }
  expect(await shownTo(ACCOUNT, t.db)).toEqual([{ is_playing: false, item: { name: 'track 0' } }]);
  expect(await shownTo(uuid(3), t.db)).toEqual([]);

  const plans: unknown[] = [];
  await t.db.transaction(async (tx) => {
    await tx.query('set local enable_seqscan = off');
    const query = async (text: string, values?: unknown[]) => {
      plans.push(...(await tx.query(`explain ${text}`, values)));
      return [];
    };
    await shownTo(ACCOUNT, { query } as never);
  });
  expect(JSON.stringify(plans)).toContain('adapter_links_connection');
});
