import { v7 as uuid } from 'uuid';
import type { RecordLog } from '../../engines/records/port';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import type { LinkedConnection } from '../../ingest/runtime/connection/adapter';
import type { LinkFence } from '../../ingest/runtime/connection/link-leases';
import { LinkStore } from '../../ingest/runtime/connection/link-store';
import type { ParkedWebhooks } from '../../ingest/runtime/parked/parked';
import { retryParkedWebhook } from '../../ingest/runtime/parked/retry-parked';
import { CONNECTION_NORMALISERS } from '../../ingest/runtime/connection/normalisers';
import { readJson } from '../../ingest/runtime/parse/text';
import type { Vendor } from '../../domain/common/vendors';
import { type TestDatabase, testDatabase } from '../support/database';
import { silentLog } from '../support/log';
import { testParked, TEST_KEYS } from '../support/parked';
import { ACCOUNT, spoken } from '../support/payloads';
import { noMetrics } from '../support/projections';
import * as support from '../support/webhooks';

const RECEIVED_AT = Date.now() - 60_000;

let t: TestDatabase;
let parked: ParkedWebhooks;
beforeAll(async () => {
  t = await testDatabase();
  parked = testParked(t.db);
});
beforeEach(() => t.db.query('truncate ingest_dead_letters'));
afterAll(() => t.drop());

const stored = () =>
  t.db.query<{ id: string; body: string; detail: string }>(
    `select id::text, encode(raw_body, 'escape') as body, detail from ingest_dead_letters order by id`,
  );

/** What a log that can never take it makes of a vendor's words: they are parked by the connection that heard them. */
async function unstorable(vendor: Vendor, text: string, connection: LinkedConnection): Promise<void> {
  const records = support.keptRecords();
  records.fail = Object.assign(new Error('invalid byte sequence'), { code: '22021' });
  const current = async (fences: readonly LinkFence[]) => new Set(fences);
  const leases = { current } as unknown as ConstructorParameters<typeof LinkStore>[0]['leases'];
  const store = new LinkStore({ records, leases, parked, log: silentLog, metrics: noMetrics });
  const received = { text, received_at: RECEIVED_AT };
  const fence = { link: `${vendor}:${connection.connection_id}`, token: 1 };
  const outcome = CONNECTION_NORMALISERS[vendor]!(received, connection);
  await store.add(store.item(vendor, connection, fence, received, outcome)!);
}

const retried = (id: string, records: RecordLog) =>
  retryParkedWebhook(id, {
    settings: support.webhookSettings(),
    connections: support.connectionsOf({}, null),
    records,
    // A process that holds no key in memory.
    parked: testParked(t.db),
    log: silentLog,
  });

const CASES: readonly [Vendor, string][] = [
  ['twitch', 'channel.follow.v2.body.json'],
  ['youtube', 'livechat.item.superChatEvent.json'],
  ['trovo', 'chat.item.follow_5003.json'],
  ['streamelements', 'channel.tips.json'],
  ['discord', 'GUILD_MEMBER_ADD.captured.json'],
];

/** What is said at this moment, as Twitch's would be too old otherwise. */
const fresh = (text: string) =>
  text.replace(/("message_timestamp":")[^"]*/, `$1${new Date(RECEIVED_AT).toISOString()}`);

test.each(CASES)(
  'what was heard over a connection of %s is retried by its own normaliser, once',
  async (vendor, file) => {
    const [said, channel_id] = spoken(vendor, file)![0]!;
    const text = fresh(said);
    const connection = { connection_id: uuid(), account_id: uuid(), channel_id };
    await unstorable(vendor, text, connection);
    const [letter, ...others] = await stored();
    expect(others).toEqual([]);
    const { kept, ...records } = support.keptRecords();
    expect(await retried(letter!.id, records as RecordLog)).toMatchObject({ status: 'retried' });
    expect(await retried(letter!.id, records as RecordLog)).toEqual({ status: 'not_parked' });
    const outcome = CONNECTION_NORMALISERS[vendor]!({ text, received_at: RECEIVED_AT }, connection);
    const expected = outcome.kind === 'ok' ? outcome.records : [];
    expect(kept.map(({ type, raw, occurred_at, subject }) => ({ type, raw, occurred_at, subject }))).toEqual(
      expected.map(({ type, raw, occurred_at, subject }) => ({ type, raw, occurred_at, subject })),
    );
    // What brings no id of its own has its letter's: a crash before the letter is settled makes no second event.
    const account_id = vendor === 'discord' ? ACCOUNT : connection.account_id;
    const external_id = expect.stringMatching(new RegExp(`^${vendor}:`));
    expect(kept).toEqual(expected.map(() => expect.objectContaining({ account_id, external_id })));
    expect(kept.length).toBeGreaterThan(0);
  },
);

describe('a letter with a giver’s address', () => {
  const tip = (username: string, status = 'success') =>
    JSON.stringify({
      type: 'message',
      topic: 'channel.tips',
      data: {
        _id: uuid(),
        status,
        approved: 'allowed',
        donation: { user: { username, email: `${username}@example.com` }, amount: 5 },
      },
    });
  const connection = { connection_id: uuid(), account_id: uuid(), channel_id: 'room' };

  test('is sealed, and gone with its giver, whatever way their name is written', async () => {
    await unstorable('streamelements', tip('Ada'), connection);
    await unstorable('streamelements', tip('Adam'), connection);
    const rows = await stored();
    for (const { body, detail } of rows) expect(`${body} ${detail}`).not.toMatch(/ada|example|donation/i);
    const letters = await Promise.all(rows.map(({ id }) => parked.get(id)));
    expect(letters.map((letter) => JSON.parse(letter!.raw_body!.toString()).data.donation.user.username)).toEqual([
      'Ada',
      'Adam',
    ]);
    const keys = createSubjectKeys({ db: t.db, master_keys: TEST_KEYS });
    expect(await keys.erase('streamelements:ada')).toBe(1);
    // As a backup from before would bring it back: without the key it is nobody's.
    expect((await testParked(t.db).get(rows[0]!.id))!.raw_body).toBeNull();
    expect(await retried(rows[0]!.id, support.keptRecords())).toMatchObject({ status: 'failed' });
    expect(await testParked(t.db).erase('streamelements', 'ada')).toBe(1);
    expect((await stored()).map(({ id }) => id)).toEqual([rows[1]!.id]);
  });

  test('whose sender is not known is under a key of the connection and day, which ends with the letters', async () => {
    const cut = tip('Ada').slice(0, -5);
    await parked.park({
      vendor: 'streamelements',
      reason: 'bad_json',
      detail: '',
      headers: { 'lumio-connection': connection.connection_id },
      raw_body: Buffer.concat([Buffer.from(cut), Buffer.from([0xff, 0xfe, 0])]),
      trace: null,
      received_at: RECEIVED_AT,
    });
    const [row] = await stored();
    expect(row!.body).not.toMatch(/ada|example/i);
    const { raw_body } = (await parked.get(row!.id))!;
    expect(raw_body!.subarray(-3)).toEqual(Buffer.from([0xff, 0xfe, 0]));
    const [key] = await t.db.query<{ days: number }>(
      `select (extract(epoch from expires_at - now()) / 86400)::float8 as days from subject_keys
       where key_id = (select key_id from ingest_dead_letters)`,
    );
    expect(Math.round(key!.days)).toBeGreaterThanOrEqual(30);
    expect(Math.round(key!.days)).toBeLessThanOrEqual(31);
    expect(await parked.erase('streamelements', 'ada@example.com')).toBe(1);
  });

  test('of a build before is read as it is, and erased', async () => {
    await t.db.query(
      `insert into ingest_dead_letters
         (id, vendor, reason, detail, headers, raw_body, delivery_key, first_received_at, last_received_at)
       values ($1, 'kick', 'bad_json', '', '{}', $2, 'k', now(), now())`,
      [uuid(), Buffer.from('{"user_id": 123')],
    );
    const [row] = await stored();
    expect((await parked.get(row!.id))!.raw_body!.toString()).toBe('{"user_id": 123');
    expect(await parked.erase('kick', '12')).toBe(0);
    expect(await parked.erase('kick', '123')).toBe(1);
  });
});

test.each(['{"email":ada@example.com}', '{"email":"ada@example.com"', '{"email":"ada@example.com",}', 'ada', ''])(
  'why %s is no JSON is said without quoting it',
  (body) => {
    const read = readJson(body);
    expect(read).toMatchObject({ ok: false, reason: 'bad_json', detail: expect.stringMatching(/JSON/) });
    expect(JSON.stringify(read)).not.toMatch(/ada|example/);
  },
);
