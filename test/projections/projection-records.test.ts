import fc from 'fast-check';
import { v7 as uuid } from 'uuid';
import { PROJECTIONS } from '../../bin/areas';
import { INSTALLATION, TOPICS } from '../../domain/common/records';
import type { LoggedRecord } from '../../engines/records/port';
import type { Projection, RecordProjection } from '../../kernel/projection';
import { applyRecords } from '../../projections/runtime/drive/apply';
import { inPieces, rowsOf, undone } from '../support/applied';
import { type TestDatabase, testDatabase } from '../support/database';

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase(2);
});
afterAll(() => t.drop());

const oneOf = <T>(...values: T[]) => fc.constantFrom(...values);
const account_id = oneOf('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000002');
const id = () => fc.constant(null).map(() => uuid());
/** Instants near each other, in the forms that vendors write them in. */
const occurred_at = oneOf(
  '2026-03-04T05:06:07Z',
  '2026-03-04T05:06:07.001Z',
  '2026-03-04T05:06:07.001500Z',
  '2026-03-04T05:06:09.000Z',
  '2026-03-05T05:06:07.000Z',
);

type Drawn = Partial<LoggedRecord> & Pick<LoggedRecord, 'account_id' | 'type' | 'platform' | 'occurred_at' | 'raw'>;
const logged = (drawn: Drawn): Omit<LoggedRecord, 'topic' | 'partition' | 'offset'> => ({
  id: uuid(),
  external_id: null,
  received_at: drawn.occurred_at,
  subject: null,
  trace: null,
  ...drawn,
});

const events = fc
  .record({
    id: id(),
    account_id,
    occurred_at,
    platform: oneOf('twitch', 'youtube'),
    happening: oneOf('follower', 'gift', 'stream_online', 'stream_offline'),
    external_id: fc.option(oneOf('a', 'b', 'c', 'd')),
    same_raw: oneOf(undefined, undefined, 'once' as const),
    broadcast: fc.option(oneOf('1', '2', '3')),
  })
  .map(({ happening, broadcast, same_raw, ...rest }) =>
    logged({
      ...rest,
      ...(same_raw && { same_raw }),
      type: `${rest.platform}:${happening}`,
      raw: JSON.stringify({
        broadcaster_user_id: '7',
        ...(broadcast && { id: broadcast, title: `Part ${broadcast}` }),
      }),
    }),
  );

const payments = fc
  .record({
    id: id(),
    object: oneOf('sub_1', 'sub_2', 'sub_3'),
    happening: oneOf('created', 'updated', 'deleted'),
    created: oneOf(1_700_000_000, 1_700_000_001, 1_700_000_002),
    status: oneOf('active', 'past_due', 'canceled'),
  })
  .map(({ id, object, happening, created, status }) =>
    logged({
      id,
      account_id: INSTALLATION,
      platform: 'stripe',
      type: `stripe:customer.subscription.${happening}`,
      occurred_at: new Date(created * 1000).toISOString(),
      raw: JSON.stringify({ created, data: { object: { id: object, status, customer: 'cus_1' } } }),
    }),
  );

const samples = fc
  .record({
    id: id(),
    account_id,
    platform: oneOf('kick', 'trovo'),
    broadcast_id: oneOf('b-1', 'b-2'),
    minute: fc.integer({ min: 1, max: 6 }),
    viewer_count: fc.nat(9),
    follower_count: fc.option(fc.nat(9)),
    title: fc.option(oneOf('One', 'Two')),
  })
  .map(({ id, account_id, platform, minute, ...sample }) =>
    logged({
      id,
      account_id,
      platform,
      type: 'stream:sample',
      // As the live watch names it: of two for one minute the first counts.
      external_id: `${platform}:sample:${sample.broadcast_id}:${minute}`,
      occurred_at: `2026-03-04T05:0${minute}:00.000Z`,
      raw: JSON.stringify(sample),
    }),
  );

const chats = fc
  .record({
    id: id(),
    account_id,
    occurred_at,
    platform: oneOf('twitch', 'kick'),
    subject_key: oneOf(undefined, uuid(), uuid(), uuid()),
    room: oneOf('null', '{"room":"another"}'),
  })
  .map(({ room, subject_key, ...rest }) =>
    logged({
      ...rest,
      ...(subject_key && { subject_key }),
      type: `${rest.platform}:chat`,
      raw: `{"text":"Hi","shared_chat":${room}}`,
    }),
  );

const RECORDS = new Map<string, fc.Arbitrary<ReturnType<typeof logged>>>([
  [TOPICS.platform_events, events],
  [TOPICS.chat_events, chats],
  [TOPICS.webhook_events, payments],
  [TOPICS.stream_samples, samples],
]);

/** Longer than what is written by COPY at the least, so that both ways of writing are met. */
const MOST = 48;
const batches = ({ from }: RecordProjection) =>
  fc
    .array(RECORDS.get(from.topic)!, { minLength: 1, maxLength: MOST, size: 'max' })
    .map((list) => list.map((one, offset): LoggedRecord => ({ ...one, topic: from.topic, partition: 0, offset })));

const isOfRecords = (p: Projection): p is RecordProjection => p.from.kind === 'topic';
const ofRecords = PROJECTIONS.filter(isOfRecords);

test('every projection of records that keeps rows is tried', () => {
  const keeping = ofRecords.filter(({ tables }) => tables.length > 0);
  const tried = keeping.filter(({ from }) => RECORDS.has(from.topic));
  expect(tried.map(({ name }) => name)).toEqual(keeping.map(({ name }) => name));
  expect(tried.length).toBeGreaterThan(3);
});

test.each(ofRecords.filter(({ tables }) => tables.length > 0).map((p) => [p.name, p] as const))(
  '%s: in batches of any size the rows are those of one record after the other',
  async (_name, p) => {
    const applied = (parts: readonly LoggedRecord[][]) =>
      undone(t.db, async (tx) => {
        for (const part of parts) await applyRecords(p, part, tx, { rebuilding: false });
        return rowsOf(tx, p.tables);
      });
    const sizes = fc.integer({ min: 2, max: MOST });
    const property = fc.asyncProperty(batches(p), sizes, async (batch, size) => {
      expect(await applied(inPieces(batch, size))).toEqual(await applied(inPieces(batch, 1)));
    });
    await fc.assert(property, { numRuns: 15 });
  },
);
