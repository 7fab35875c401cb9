import { randomUUID } from 'node:crypto';
import { INSTALLATION } from '../../domain/common/records';
import { isPaypalAddress } from '../../ingest/paypal/webhook';
import { retryParkedWebhook } from '../../ingest/runtime/parked/retry-parked';
import { webhookRoutes } from '../../ingest/runtime/webhook/webhooks';
import { createHttpClients } from '../../vendors/http/client';
import { paypalVerification } from '../../vendors/paypal/verification';
import { type TestDatabase, testDatabase } from '../support/database';
import { testParked } from '../support/parked';
import { silentLog } from '../support/log';
import { noMetrics } from '../support/projections';
import * as support from '../support/webhooks';
import { fakePaypal } from '../vendors/paypal';

const NOW = Date.parse('2026-11-21T10:00:00Z');
const AT = NOW / 1000;
const OK = { status: 200, body: '{"success":true}' };
const { stripe_secret, stripe_connect_secret } = support.signing;
const refusal = (status: number, message?: string) =>
  expect.objectContaining({ status, ...(message !== undefined && { message }) });

const paypal = fakePaypal(support.signing.paypal_webhook_id);
const http = createHttpClients({ metrics: noMetrics, allow_loopback: true });
let clock = NOW;
let database: TestDatabase;
beforeAll(async () => {
  await paypal.vendor.start();
  database = await testDatabase();
});
beforeEach(() => {
  paypal.vendor.fault = null;
  paypal.vendor.calls.length = 0;
  clock = NOW;
});
afterAll(async () => {
  await http.close();
  await paypal.vendor.close();
  await database.drop();
});

function setUp(options: { payments?: Parameters<typeof support.webhookSettings>[1]; verifies?: boolean } = {}) {
  const records = support.keptRecords();
  const parked = testParked(database.db);
  const settings = support.webhookSettings({}, options.payments);
  const { base_url: api_url } = paypal.vendor;
  const verification = paypalVerification(http, { ...paypal.app, api_url, now: () => clock });
  const deps = {
    settings,
    paypal: options.verifies === false ? null : verification,
    connections: support.connectionsOf({}, null),
    records,
    parked,
    log: silentLog,
    metrics: support.keptMetrics(),
    now: () => NOW,
  };
  const routes = webhookRoutes(deps);
  const deliver = (name: string, body: Buffer, headers: Record<string, string>) =>
    support.deliver(routes, `/v1/webhooks/${name}`, body, headers, NOW);
  return { deps, routes, deliver, records, parked };
}

const stripe = (name: string) => support.fixture('stripe', `${name}.json`);
const deleted = stripe('customer.subscription.deleted');

describe('stripe signatures', () => {
  const signed = (...secrets: string[]) => support.stripeHeaders(deleted, AT, ...secrets);
  const v1 = (secret: string) => signed(secret)['stripe-signature'].split(',')[1]!;

  test.each([
    ['its secret', signed(stripe_secret)],
    ['its secret among several', signed('whsec_before', stripe_secret, 'whsec_after')],
    ['spaces and other schemes', { 'stripe-signature': `t=${AT}, v0=00, ${v1(stripe_secret)}` }],
    ['300 seconds ago', support.stripeHeaders(deleted, AT - 300, stripe_secret)],
  ])('%s is accepted', async (_name, headers) => {
    const { deliver, records } = setUp();
    await expect(deliver('stripe', deleted, headers)).resolves.toEqual(OK);
    expect(records.kept).toHaveLength(1);
  });

  test.each([
    ['nothing', {}],
    ['another secret', signed('whsec_other')],
    ['the secret of Connect', signed(stripe_connect_secret)],
    ['301 seconds ago', support.stripeHeaders(deleted, AT - 301, stripe_secret)],
    ['301 seconds ahead', support.stripeHeaders(deleted, AT + 301, stripe_secret)],
    ['a body of another event', support.stripeHeaders(stripe('invoice.payment_failed'), AT, stripe_secret)],
    ['another time than was signed', { 'stripe-signature': `t=${AT + 1},${v1(stripe_secret)}` }],
    ['no time', { 'stripe-signature': v1(stripe_secret) }],
    ['a time in milliseconds', support.stripeHeaders(deleted, NOW, stripe_secret)],
    ['only an old scheme', { 'stripe-signature': `t=${AT},${v1(stripe_secret).replace('v1', 'v0')}` }],
    ['garbage', { 'stripe-signature': 't=,v1=,=,,v1=zz' }],
    ['signatures beyond a handful', signed(...Array<string>(8).fill('whsec_other'), stripe_secret)],
  ])('%s is refused with 401', async (_name, headers) => {
    const { deliver, records } = setUp();
    await expect(deliver('stripe', deleted, headers)).rejects.toEqual(refusal(401));
    expect(records.kept).toEqual([]);
  });

  test('without a secret both endpoints refuse, and only that of Connect can be opened', async () => {
    const { deps, records } = setUp();
    const unset = (allow_unsigned_webhooks: boolean) => {
      const { settings } = deps;
      const payments = { ...settings.payments, stripe_connect_webhook_secret: '', allow_unsigned_webhooks };
      const routes = webhookRoutes({ ...deps, settings: { ...settings, stripe: { webhook_secret: ' ' }, payments } });
      return (name: string) => support.deliver(routes, `/v1/webhooks/${name}`, deleted, signed(''), NOW);
    };
    for (const name of ['stripe', 'stripe-connect']) await expect(unset(false)(name)).rejects.toEqual(refusal(401));
    await expect(unset(true)('stripe')).rejects.toEqual(refusal(401));
    expect(records.kept).toEqual([]);
    await expect(unset(true)('stripe-connect')).resolves.toEqual(OK);
    expect(records.kept).toHaveLength(1);
  });
});

describe('what payment vendors send becomes records', () => {
  const connect = (name: string) => support.fixture('stripe-connect', `${name}.json`);
  const payout = (name: string) => support.fixture('paypal', `${name}.json`);
  const own = (body: Buffer) => paypalHeaders(body);

  test.each([
    ['stripe', stripe('checkout.session.completed'), 'checkout.session.completed', 'stripe:cus_00000000000000'],
    ['stripe', stripe('customer.subscription.created'), 'customer.subscription.created', 'stripe:cus_00000000000000'],
    ['stripe', stripe('customer.subscription.updated'), 'customer.subscription.updated', 'stripe:cus_00000000000000'],
    ['stripe', deleted, 'customer.subscription.deleted', 'stripe:cus_00000000000000'],
    ['stripe', stripe('invoice.payment_failed'), 'invoice.payment_failed', 'stripe:cus_00000000000000'],
    ['stripe-connect', stripe('charge.refunded'), 'connect.charge.refunded', 'stripe:ch_000000000000000000000000'],
    ['stripe-connect', connect('transfer.paid'), 'connect.transfer.paid', 'stripe:tr_00000000000000'],
    ['stripe-connect', connect('transfer.failed'), 'connect.transfer.failed', 'stripe:tr_00000000000000'],
    ['stripe-connect', connect('account.updated'), 'connect.account.updated', 'stripe:acct_00000000000000'],
    [
      'stripe-connect',
      stripe('invoice.payment_succeeded'),
      'connect.invoice.payment_succeeded',
      'stripe:cus_00000000000000',
    ],
  ])('%s: %#', async (endpoint, body, type, subject) => {
    const secret = endpoint === 'stripe' ? stripe_secret : stripe_connect_secret;
    const { deliver, records } = setUp();
    await expect(deliver(endpoint, body, support.stripeHeaders(body, AT, secret))).resolves.toEqual(OK);
    const event = JSON.parse(body.toString()) as { id: string; created: number };
    const id = endpoint === 'stripe' ? event.id : `connect:${event.id}`;
    expect(records.kept).toEqual([
      expect.objectContaining({
        topic: 'webhook-events',
        account_id: INSTALLATION,
        type: `stripe:${type}`,
        platform: 'stripe',
        external_id: `stripe:${id}`,
        subject,
        occurred_at: new Date(event.created * 1000).toISOString(),
        raw: body.toString(),
      }),
    ]);
  });

  test.each([
    ['PAYMENT.PAYOUTS-ITEM.SUCCEEDED', 'payouts-item.succeeded', 'paypal:payee@example.com'],
    ['PAYMENT.PAYOUTS-ITEM.FAILED.partial', 'payouts-item.failed', 'paypal:ITEM-2'],
    ['PAYMENT.PAYOUTS-ITEM.UNCLAIMED.partial', 'payouts-item.unclaimed', 'paypal:unclaimed.payee@example.com'],
    ['PAYMENT.PAYOUTSBATCH.SUCCESS', 'payoutsbatch.success', null],
  ])('paypal: %s', async (name, type, subject) => {
    const body = payout(name);
    const { deliver, records } = setUp();
    await expect(deliver('paypal-payouts', body, own(body))).resolves.toEqual(OK);
    const { id, create_time } = JSON.parse(body.toString()) as { id: string; create_time: string };
    expect(records.kept).toEqual([
      expect.objectContaining({
        topic: 'webhook-events',
        account_id: INSTALLATION,
        type: `paypal:payment.${type}`,
        external_id: `paypal:${id}`,
        subject,
        occurred_at: new Date(create_time).toISOString(),
        raw: body.toString(),
      }),
    ]);
  });

  test.each([
    ['stripe', stripe('charge.dispute.created')],
    ['stripe', stripe('payment_intent.succeeded')],
    ['stripe', stripe('object.event.current_api')],
    ['stripe-connect', connect('account.application.deauthorized.captured')],
    ['stripe-connect', connect('transfer.created')],
    ['paypal-payouts', payout('PAYMENT.PAYOUTS-ITEM.RETURNED.partial')],
  ])('%s: 200 and nothing for %#', async (endpoint, body) => {
    const secret = endpoint === 'stripe' ? stripe_secret : stripe_connect_secret;
    const { deliver, records } = setUp();
    const headers = endpoint === 'paypal-payouts' ? own(body) : support.stripeHeaders(body, AT, secret);
    await expect(deliver(endpoint, body, headers)).resolves.toEqual(OK);
    expect(records.kept).toEqual([]);
  });

  test('what is signed and cannot be read is parked, and read again by the webhook that took it', async () => {
    const { deps, deliver, records, parked } = setUp();
    const body = Buffer.from(`{"id":"evt_${randomUUID()}","type":"account.updated","data":{"object":{}}}`);
    await expect(
      deliver('stripe-connect', body, support.stripeHeaders(body, AT, stripe_connect_secret)),
    ).resolves.toEqual(OK);
    const [letter] = await parked.list({ vendor: 'stripe' });
    expect(letter).toMatchObject({
      reason: 'bad_payload',
      headers: { 'lumio-webhook': '/v1/webhooks/stripe-connect' },
    });
    await expect(retryParkedWebhook(letter!.id, deps)).resolves.toMatchObject({
      status: 'failed',
      reason: 'bad_payload',
    });
    expect(records.kept).toEqual([]);
  });
});

/** As PayPal sends it, and remembered there as its own. */
function paypalHeaders(body: Buffer): Record<string, string> {
  const transmission_id = randomUUID();
  paypal.signed.set(transmission_id, body.toString());
  return {
    'paypal-transmission-id': transmission_id,
    'paypal-transmission-time': '2026-11-21T09:59:58Z',
    'paypal-transmission-sig': 'lmI95Jx3Y9nhR5SJWlHVIWpg4AgFk7n9bCHSRxbrd8A9==',
    'paypal-auth-algo': 'SHA256withRSA',
    'paypal-cert-url': 'https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-1d93a270',
  };
}

describe('paypal is asked whether a delivery is its own', () => {
  const body = support.fixture('paypal', 'PAYMENT.PAYOUTS-ITEM.SUCCEEDED.json');
  const without = (headers: Record<string, string>, name: string) =>
    Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));

  test('the token is asked for once, however many deliveries come, and anew when PayPal refuses it', async () => {
    const { deliver } = setUp();
    const deliveries = Array.from({ length: 5 }, () => deliver('paypal-payouts', body, paypalHeaders(body)));
    await expect(Promise.all(deliveries)).resolves.toEqual(Array(5).fill(OK));
    const tokens = () => paypal.vendor.calls.filter(({ path }) => path === '/v1/oauth2/token').length;
    expect(tokens()).toBe(1);
    paypal.revokeTokens();
    await expect(deliver('paypal-payouts', body, paypalHeaders(body))).resolves.toEqual(OK);
    expect(tokens()).toBe(2);
    clock += 32_400_000;
    for (let n = 0; n < 2; n += 1) await deliver('paypal-payouts', body, paypalHeaders(body));
    expect(tokens()).toBe(3);
  });

  test('what PayPal did not sign is 401: another body, one that names another webhook, the same meaning', async () => {
    const { deliver, records } = setUp();
    const headers = paypalHeaders(body);
    const injected = Buffer.from(`${body.toString().trimEnd()},"webhook_id":"of-the-attacker","x":{}`);
    const others = [Buffer.from('{}'), injected, Buffer.from(JSON.stringify(JSON.parse(body.toString())))];
    const broken = [Buffer.from([0xef, 0xbb, 0xbf, ...body]), Buffer.from([...body, 0xff]), Buffer.alloc(0)];
    for (const other of [...others, ...broken, Buffer.from('[]'), Buffer.from('null')])
      await expect(deliver('paypal-payouts', other, headers)).rejects.toEqual(refusal(401));
    expect(records.kept).toEqual([]);
  });

  test('a header that is missing, or a certificate from elsewhere, is 401 before PayPal is asked', async () => {
    const { deliver } = setUp();
    const headers = paypalHeaders(body);
    for (const name of Object.keys(headers))
      await expect(deliver('paypal-payouts', body, without(headers, name))).rejects.toEqual(refusal(401));
    const elsewhere = { ...headers, 'paypal-cert-url': 'https://evilpaypal.com/cert' };
    await expect(deliver('paypal-payouts', body, elsewhere)).rejects.toEqual(refusal(401));
    const long = { ...headers, 'paypal-auth-algo': 'x'.repeat(2000) };
    await expect(deliver('paypal-payouts', body, long)).rejects.toEqual(refusal(401));
    expect(paypal.vendor.calls).toEqual([]);
  });

  test('503 while PayPal is away, and nothing is kept', async () => {
    const { deliver, records } = setUp();
    for (const fault of [{ status: 403 }, { status: 429, headers: { 'retry-after': '30' } }]) {
      paypal.vendor.fault = fault;
      await expect(deliver('paypal-payouts', body, paypalHeaders(body))).rejects.toEqual(refusal(503));
    }
    expect(records.kept).toEqual([]);
    paypal.vendor.fault = null;
    await expect(deliver('paypal-payouts', body, paypalHeaders(body))).resolves.toEqual(OK);
  });

  test('without the webhook’s id, or an app that may ask, everything is 401', async () => {
    for (const options of [{ payments: { paypal_webhook_id: '' } }, { verifies: false }])
      await expect(setUp(options).deliver('paypal-payouts', body, paypalHeaders(body))).rejects.toEqual(refusal(401));
    expect(paypal.vendor.calls).toEqual([]);
  });

  test.each([
    ['https://paypal.com/x', true],
    ['https://api.sandbox.paypal.com/x', true],
    ['https://API.PayPal.com/x', true],
    ['https://api.paypal.com:443/x', true],
    ['http://api.paypal.com/x', false],
    ['https://api.paypal.com:8443/x', false],
    ['https://evilpaypal.com/x', false],
    ['https://paypal.com.evil.example/x', false],
    ['https://paypal.com@evil.example/x', false],
    ['https://me@paypal.com/x', false],
    ['https://paypal.com./x', false],
    ['//paypal.com/x', false],
    ['paypal.com', false],
  ])('%s as the place of a certificate: %s', (address, expected) => {
    expect(isPaypalAddress(address)).toBe(expected);
  });
});
