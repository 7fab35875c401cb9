import { randomUUID } from 'node:crypto';
import { startServer, type TestServer } from '../../support/server';
import { until } from '../../support/projections';
import { stripeHeaders } from '../../support/webhooks';
import { fakePaypal } from '../../vendors/paypal';

const WEBHOOK_ID = '1JE4291016473214C';
const STRIPE = 'whsec_platform';
const CONNECT = 'whsec_connect';
const paypal = fakePaypal(WEBHOOK_ID);
let nodes: TestServer[] = [];
beforeAll(async () => {
  await paypal.vendor.start();
  const env = {
    LUMIO_OUTGOING__ALLOW_LOOPBACK: 'true',
    LUMIO_STRIPE__WEBHOOK_SECRET: STRIPE,
    LUMIO_PAYMENTS__STRIPE_CONNECT_WEBHOOK_SECRET: CONNECT,
    LUMIO_PAYMENTS__PAYPAL_WEBHOOK_ID: WEBHOOK_ID,
    LUMIO_PAYPAL__CLIENT_ID: paypal.app.client_id,
    LUMIO_PAYPAL__CLIENT_SECRET: paypal.app.client_secret,
    LUMIO_PAYPAL__API_URL: paypal.vendor.base_url,
  };
  const first = await startServer({ env });
  nodes = [first];
  const { LUMIO_DATABASE__URL = '', LUMIO_SECRETS__KEYS = '' } = first.env;
  nodes.push(await startServer({ env: { ...env, LUMIO_DATABASE__URL, LUMIO_SECRETS__KEYS } }));
});
afterAll(async () => {
  for (const node of nodes.reverse()) await node.dispose();
  await paypal.vendor.close();
});

/** What a vendor says of one of its objects. */
interface Said {
  /** Of the event. */
  id: string;
  body: Buffer;
  headers(): Record<string, string>;
}

/** One vendor's endpoint, and what it says: that an object is over, and something else that is dated later. */
interface Endpoint {
  path: string;
  /** Before the event's id in the ledger. */
  prefix: string;
  ended: string;
  over(object_id: string): Said;
  later(object_id: string): Said;
}

const AT = 1_700_000_000;

function stripe(path: string, prefix: string, secret: string): Endpoint {
  const said = (happening: string, status: string, after: number) => (object_id: string) => {
    const id = `evt_${randomUUID()}`;
    const type = `customer.subscription.${happening}`;
    const object = { id: object_id, status, customer: 'cus_1' };
    const body = Buffer.from(JSON.stringify({ id, type, created: AT + after, data: { object } }));
    return { id, body, headers: () => stripeHeaders(body, Math.floor(Date.now() / 1000), secret) };
  };
  const [over, later] = [said('deleted', 'canceled', 100), said('updated', 'active', 200)];
  return { path, prefix, ended: 'canceled', over, later };
}

function payouts(): Endpoint {
  const said = (kind: string, status: string, after: number) => (payout_item_id: string) => {
    const id = `WH-${randomUUID()}`;
    const create_time = new Date((AT + after) * 1000).toISOString();
    const resource = { payout_item_id, transaction_status: status };
    const text = JSON.stringify({ id, event_type: `PAYMENT.PAYOUTS-ITEM.${kind}`, create_time, resource });
    const headers = () => {
      const transmission_id = randomUUID();
      paypal.signed.set(transmission_id, text);
      return {
        'paypal-transmission-id': transmission_id,
        'paypal-transmission-time': create_time,
        'paypal-transmission-sig': 'signature',
        'paypal-auth-algo': 'SHA256withRSA',
        'paypal-cert-url': 'https://api.paypal.com/cert',
      };
    };
    return { id, body: Buffer.from(text), headers };
  };
  const [over, later] = [said('SUCCEEDED', 'SUCCESS', 100), said('UNCLAIMED', 'UNCLAIMED', 200)];
  return { path: 'paypal-payouts', prefix: 'paypal:', ended: 'SUCCESS', over, later };
}

const ENDPOINTS = [
  stripe('stripe', 'stripe:', STRIPE),
  stripe('stripe-connect', 'stripe:connect:', CONNECT),
  payouts(),
];

/** One delivery to both nodes at the same moment. */
async function toBoth({ path }: Endpoint, { body, headers }: Said): Promise<number[]> {
  const answers = nodes.map(({ base_url }) =>
    fetch(`${base_url}/v1/webhooks/${path}`, { method: 'POST', body: new Uint8Array(body), headers: headers() }),
  );
  return (await Promise.all(answers)).map(({ status }) => status);
}

const ORDERS: readonly (readonly [string, (endpoint: Endpoint, over: Said, later: Said) => Promise<number[][]>])[] = [
  ['the end first', async (to, over, later) => [await toBoth(to, over), await toBoth(to, later)]],
  ['the end last', async (to, over, later) => [await toBoth(to, later), await toBoth(to, over)]],
  ['both at once', (to, over, later) => Promise.all([toBoth(to, over), toBoth(to, later)])],
];

describe.each(ENDPOINTS)('what comes to /v1/webhooks/$path of two nodes at the same moment', (endpoint) => {
  test.each(ORDERS)('counts once, and what is dated later does not undo an end: %s', async (_order, deliver) => {
    const { db } = nodes[0]!.database!;
    const object_id = `object-${randomUUID()}`;
    const [over, later] = [endpoint.over(object_id), endpoint.later(object_id)];
    expect((await deliver(endpoint, over, later)).flat()).toEqual([200, 200, 200, 200]);
    const ids = [over, later].map(({ id }) => `${endpoint.prefix}${id}`).sort();
    const counted = async () => {
      const rows = await db.query<{ external_id: string }>(
        `select external_id from ledger where projection = 'payment-objects' and external_id = any ($1::text[])`,
        [ids],
      );
      return rows.map(({ external_id }) => external_id).sort();
    };
    await until(async () => new Set(await counted()).size === 2);
    expect(await counted()).toEqual(ids);
    const kept = await db.query('select status, ended from payment_objects where object_id = $1', [object_id]);
    expect(kept).toEqual([{ status: endpoint.ended, ended: true }]);
  });
});
