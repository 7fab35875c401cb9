import fc from 'fast-check';
import { v7 as uuid } from 'uuid';
import type { LoggedRecord } from '../../engines/records/port';
import { VENDORS } from '../../domain/common/vendors';
import { normaliseSpotify } from '../../ingest/spotify/adapter';
import { chatLive } from '../../projections/chat/chat';
import { eventLog } from '../../projections/events/events';
import { paymentObjects } from '../../projections/billing/payments';
import { applyRecords } from '../../projections/runtime/drive/apply';
import { rowsOf, undone } from '../support/applied';
import { testDatabase, type TestDatabase } from '../support/database';
import { ACCOUNT, AT, connection, door, FILES, NOW, read, readSpoken, spoken, WEBHOOKS } from '../support/payloads';
import { kickHeaders, shopifyHeaders } from '../support/webhooks';

type Stored = Omit<LoggedRecord, 'id' | 'partition' | 'offset'>;

/** Headers of a delivery with an id of its own, where the fixtures' common ones name one id for all. */
function headersOf(vendor: string, file: string, body: Buffer): Record<string, string> {
  const headers = WEBHOOKS[vendor]!.sign(body, file);
  if (vendor === 'kick') return kickHeaders(body, headers['kick-event-type']!, `01JX-${file}`, AT);
  if (vendor !== 'shopify') return headers;
  return shopifyHeaders(body, headers['x-shopify-topic']!, file, headers['x-shopify-shop-domain']);
}

/** A frame of Twitch's with an id of its own: those of the fixtures that bring none share one. */
function ownFrame(vendor: string, file: string, text: string): string {
  if (vendor !== 'twitch') return text;
  const frame = JSON.parse(text) as { metadata: Record<string, unknown> };
  return JSON.stringify({ ...frame, metadata: { ...frame.metadata, message_id: file } });
}

/** What each payload of the fixtures is stored as, delivery by delivery. */
async function deliveries(): Promise<Stored[][]> {
  const found: Stored[][] = [];
  const base = { account_id: ACCOUNT, received_at: AT, trace: null };
  const drafted = (outcome: ReturnType<typeof readSpoken>) =>
    outcome.kind === 'ok' ? outcome.records.map(({ owner: _owner, ...draft }) => ({ ...base, ...draft })) : [];
  for (const [vendor, file] of FILES) {
    const said = spoken(vendor, file);
    for (const [text, channel_id] of said ?? [])
      found.push(drafted(readSpoken(vendor, ownFrame(vendor, file, text), channel_id, 0)));
    if (said !== null) continue;
    const { kept, deliver } = door();
    const body = read(vendor, file);
    await deliver(`/v1/webhooks/${WEBHOOKS[vendor]!.path}`, body, headersOf(vendor, file, body));
    found.push(kept.records);
  }
  const change = JSON.stringify({ action: 'play', to: 'spotify:track:1', count: 1, raw: {} });
  found.push(drafted(normaliseSpotify({ text: change, received_at: NOW }, connection('music'))));
  const isNew = isAnother(new Set());
  return found.filter((records) => records.length > 0 && records.every(isNew));
}

/**
 * Several fixtures show one event in several forms, of which the first in the log counts: one of them is played. A
 * record without an id has nothing by which a repetition could be known.
 */
const isAnother =
  (known: Set<string>) =>
  ({ topic, external_id, raw }: Stored): boolean => {
    const keys = [`${topic} ${external_id}`, `${topic} ${raw}`];
    if (external_id === null || keys.some((key) => known.has(key))) return false;
    for (const key of keys) known.add(key);
    return true;
  };

const PROJECTIONS = [eventLog, chatLive, paymentObjects];
let t: TestDatabase;
let all: Stored[][];
beforeAll(async () => {
  t = await testDatabase();
  all = await deliveries();
});
afterAll(() => t?.drop());

/** Rows and messages of these deliveries in this order, so many records at a time; nothing of it stays. */
const after = (order: readonly number[], size: number) =>
  undone(t.db, async (tx) => {
    let offset = 0;
    const records = order.flatMap((n) =>
      all[n]!.map((record): LoggedRecord => ({ ...record, id: uuid(), partition: 0, offset: offset++ })),
    );
    const messages: string[] = [];
    for (const p of PROJECTIONS) {
      const mine = records.filter(({ topic }) => topic === p.from.topic);
      for (let at = 0; at < mine.length; at += size)
        for (const { channel, event_type, data } of await applyRecords(p, mine.slice(at, at + size), tx, {
          rebuilding: false,
        })) {
          const { id: _id, ...shown } = JSON.parse(data) as Record<string, unknown>;
          // What is on air follows the platforms' own times, and is not announced once it is over.
          if (!event_type.startsWith('channel:')) messages.push(`${channel} ${event_type} ${JSON.stringify(shown)}`);
        }
    }
    const rows = await tx.query('select type, external_id, raw::text from platform_event_logs order by 1, 2, 3');
    const counters = await rowsOf(tx, ['event_log_counters']);
    const payments = await tx.query(
      'select vendor, kind, object_id, status from payment_objects order by vendor, kind, object_id',
    );
    return { rows, counters, payments, messages: messages.sort() };
  });

test('deliveries of every vendor in any order and number lead to one row, one alert and one log entry', async () => {
  const once = await after([...all.keys()], 1_000);
  expect(new Set(all.flat().map(({ platform }) => platform))).toEqual(new Set(VENDORS));
  const ids = once.rows.map(({ external_id }) => external_id);
  expect(new Set(ids).size).toBe(ids.length);
  const alerts = once.messages.filter((message) => message.startsWith('events:'));
  expect(alerts).toHaveLength(once.rows.length);
  const thrice = [...all.keys(), ...all.keys(), ...all.keys()];
  await fc.assert(
    fc.asyncProperty(
      fc.shuffledSubarray(thrice, { minLength: thrice.length }),
      fc.constantFrom(7, 100, 5_000),
      async (order, size) => expect(await after(order, size)).toEqual(once),
    ),
    { numRuns: 4 },
  );
});

test('a record that its producer stored twice is announced once', async () => {
  await undone(t.db, async (tx) => {
    const records = all.flat().map((record, offset): LoggedRecord => ({ ...record, id: uuid(), partition: 0, offset }));
    for (const p of PROJECTIONS) {
      const mine = records.filter(({ topic }) => topic === p.from.topic);
      const first = await applyRecords(p, mine, tx, { rebuilding: false });
      const second = await applyRecords(p, mine, tx, { rebuilding: false });
      expect([p.name, first.length > 0 || p === paymentObjects, second]).toEqual([p.name, true, []]);
    }
  });
});
