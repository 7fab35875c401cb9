import fc from 'fast-check';
import { v7 as uuid } from 'uuid';
import { readPayment } from '../../domain/billing/payments';
import { ERASED_RAW, INSTALLATION } from '../../domain/common/records';
import type { LoggedRecord } from '../../engines/records/port';
import { DataError } from '../../kernel/projection';
import { paymentsEraser } from '../../privacy/erasure/payments';
import { paymentObjects } from '../../projections/billing/payments';
import { type TestDatabase, testDatabase } from '../support/database';
import { fixture } from '../support/webhooks';

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase();
});
afterAll(() => t.drop());

const record = (type: string, raw: object | string): LoggedRecord => ({
  id: uuid(),
  account_id: INSTALLATION,
  type,
  platform: type.split(':')[0]!,
  external_id: null,
  occurred_at: new Date().toISOString(),
  received_at: new Date().toISOString(),
  subject: null,
  raw: typeof raw === 'string' ? raw : JSON.stringify(raw),
  trace: null,
  topic: 'webhook-events',
  partition: 0,
  offset: 0,
});
const apply = (batch: LoggedRecord[]) => t.db.transaction((tx) => paymentObjects.apply(batch, tx));
const objects = (object_id: string) =>
  t.db.query('select * from payment_objects where object_id = $1', [object_id]) as Promise<Record<string, any>[]>;
const text = (vendor: string, name: string) => fixture(vendor, `${name}.json`).toString();

/** An event of a subscription, at a second of its own. */
const subscription = (id: string, happening: string, created: number, status: string) =>
  record(`stripe:customer.subscription.${happening}`, { created, data: { object: { id, status, customer: 'cus_1' } } });

test('a late updated never undoes a deleted, in one batch or over several, whatever its time', async () => {
  const deleted = (id: string) => subscription(id, 'deleted', 1_700_000_100, 'canceled');
  const updated = (id: string) => subscription(id, 'updated', 1_700_000_050, 'active');
  const later = (id: string) => subscription(id, 'updated', 1_700_000_200, 'active');
  await apply([deleted('sub_one'), updated('sub_one'), later('sub_one')]);
  for (const one of [deleted('sub_two'), updated('sub_two'), later('sub_two')]) await apply([one]);
  for (const id of ['sub_one', 'sub_two'])
    expect(await objects(id)).toEqual([expect.objectContaining({ status: 'canceled', ended: true })]);
});

test('in whatever order and batches its events come, an object is what its vendor’s times say', async () => {
  const events = fc.array(
    fc.record({ happening: fc.constantFrom('created', 'updated', 'deleted'), second: fc.integer({ min: 0, max: 30 }) }),
    { minLength: 1, maxLength: 8 },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.nat(30), { minLength: 1, maxLength: 6 }),
      events,
      fc.nat(3),
      async (ids, some, cut) => {
        // One event a second: within a second the later arrival holds, and its order is no matter of the vendor's.
        const seen = new Set<number>();
        const distinct = some.filter(({ second }) => !seen.has(second) && seen.add(second));
        const id = `sub_${uuid()}${ids.length}`;
        const batch = distinct.map(({ happening, second }) =>
          subscription(id, happening, 1_700_000_000 + second, `${happening}-${second}`),
        );
        await apply(batch.slice(0, cut));
        await apply(batch.slice(cut));
        const best = [...distinct].sort(
          (a, b) => Number(b.happening === 'deleted') - Number(a.happening === 'deleted') || b.second - a.second,
        )[0]!;
        expect(await objects(id)).toEqual([
          expect.objectContaining({ status: `${best.happening}-${best.second}`, ended: best.happening === 'deleted' }),
        ]);
      },
    ),
    { numRuns: 40 },
  );
});

test('what came within one second: created before updated, the greater refund, the later arrival', async () => {
  const at = 1_700_000_000;
  await apply([subscription('sub_tie', 'updated', at, 'active'), subscription('sub_tie', 'created', at, 'incomplete')]);
  await apply([subscription('sub_tie', 'created', at, 'incomplete')]);
  expect(await objects('sub_tie')).toEqual([expect.objectContaining({ status: 'active' })]);
  await apply([subscription('sub_tie', 'updated', at, 'past_due')]);
  expect(await objects('sub_tie')).toEqual([expect.objectContaining({ status: 'past_due' })]);
  const refund = (amount_refunded: number) =>
    record('stripe:connect.charge.refunded', { created: at, data: { object: { id: 'ch_tie', amount_refunded } } });
  await apply([refund(500)]);
  await apply([refund(200)]);
  expect(await objects('ch_tie')).toEqual([
    expect.objectContaining({ facts: expect.objectContaining({ amount_refunded: 500 }) }),
  ]);
});

describe('both shapes of Stripe’s API', () => {
  const wrapped = (name: string, type: string) => {
    const object = JSON.parse(text('stripe', name));
    return readPayment(`stripe:${type}`, JSON.stringify({ created: 1_700_000_000, livemode: true, data: { object } }));
  };

  test('the end of a subscription’s period', () => {
    const before = readPayment('stripe:customer.subscription.updated', text('stripe', 'customer.subscription.updated'));
    expect(before).toMatchObject({
      kind: 'subscription',
      source: 'platform',
      customer: 'cus_00000000000000',
      livemode: false,
      facts: { current_period_end: '2022-04-26T18:41:45.000Z', price_ids: ['price_000000000000000000000000'] },
    });
    const today = wrapped('object.subscription.current_api', 'customer.subscription.updated');
    const item = JSON.parse(text('stripe', 'object.subscription.current_api')).items.data[0];
    expect(today).toMatchObject({
      livemode: true,
      facts: { current_period_end: new Date(item.current_period_end * 1000).toISOString(), price_ids: [item.price.id] },
    });
  });

  test('the subscription of an invoice', () => {
    const { subscription: named } = JSON.parse(text('stripe', 'invoice.payment_failed')).data.object;
    const before = readPayment('stripe:invoice.payment_failed', text('stripe', 'invoice.payment_failed'));
    expect(before).toMatchObject({ kind: 'invoice', facts: { subscription: named } });
    const object = JSON.parse(text('stripe', 'object.invoice.current_api'));
    object.parent = { type: 'subscription_details', subscription_details: { subscription: { id: 'sub_expanded' } } };
    const raw = JSON.stringify({ created: 1_700_000_000, data: { object } });
    expect(readPayment('stripe:invoice.payment_failed', raw)).toMatchObject({
      facts: { subscription: 'sub_expanded' },
    });
  });

  test('a checkout', () => {
    const before = readPayment('stripe:checkout.session.completed', text('stripe', 'checkout.session.completed'));
    expect(before).toMatchObject({
      status: 'complete',
      facts: { mode: 'payment', payment_status: 'paid', amount_total: 3000, currency: 'usd', metadata: {} },
    });
    expect(wrapped('object.checkout.session.current_api', 'checkout.session.completed').kind).toBe('checkout_session');
  });
});

test.each([
  ['stripe:connect.account.updated', 'stripe-connect', 'account.updated_express.captured', { kind: 'account' }],
  ['stripe:connect.transfer.paid', 'stripe-connect', 'transfer.paid', { kind: 'transfer', status: 'paid' }],
  [
    'paypal:payment.payouts-item.unclaimed',
    'paypal',
    'PAYMENT.PAYOUTS-ITEM.UNCLAIMED.partial',
    { status: 'UNCLAIMED', ended: false, facts: { sender_item_id: '84b0282c-64af-4bbd-8b5e-7542e394ab1f' } },
  ],
  [
    'paypal:payment.payouts-item.succeeded',
    'paypal',
    'PAYMENT.PAYOUTS-ITEM.SUCCEEDED',
    { status: 'SUCCESS', ended: true, facts: { amount: { value: '1.0', currency: 'USD' } } },
  ],
  ['paypal:payment.payouts-item.failed', 'paypal', 'PAYMENT.PAYOUTS-ITEM.FAILED.partial', { status: 'FAILED' }],
  [
    'paypal:payment.payoutsbatch.success',
    'paypal',
    'PAYMENT.PAYOUTSBATCH.SUCCESS',
    { kind: 'payout_batch', object_id: 'CQGA9SFAU8WSN', facts: { sender_batch_id: 'REL1' } },
  ],
])('%s of %s holds nothing personal', (type, vendor, name, expected) => {
  const payment = readPayment(type, text(vendor, name));
  expect(payment).toMatchObject(expected);
  expect(JSON.stringify(payment)).not.toMatch(/@|example/);
});

test('what is no such event is a data error, whatever it is', () => {
  const types = [
    'stripe:invoice.payment_failed',
    'stripe:connect.account.updated',
    'paypal:payment.payouts-item.failed',
  ];
  fc.assert(
    fc.property(fc.constantFrom(...types), fc.oneof(fc.string(), fc.json(), fc.json({ maxDepth: 4 })), (type, raw) => {
      const failure = () => {
        try {
          readPayment(type, raw);
          return null;
        } catch (error) {
          return (error as Error).name;
        }
      };
      expect([null, 'DataError']).toContain(failure());
    }),
  );
  expect(() => readPayment('stripe:invoice.payment_failed', '{}')).toThrow(DataError);
});

test('of an erased payer nothing is left, and a rebuild makes nothing of them either', async () => {
  const one = subscription('sub_gone', 'updated', 1_700_000_000, 'active');
  await apply([one]);
  expect(await t.db.transaction((tx) => paymentsEraser.erase(tx, [one]))).toBe(1);
  expect(await t.db.transaction((tx) => paymentsEraser.erase(tx, [one]))).toBe(0);
  await apply([{ ...one, raw: ERASED_RAW }]);
  expect(await objects('sub_gone')).toEqual([]);
});
