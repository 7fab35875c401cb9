import { createHmac, createPrivateKey, randomUUID, sign } from 'node:crypto';
import { kickHeaders } from '../support/webhooks';
import { type Posted, VendorCloud } from '../support/vendor-cloud';
import { dose, SEED, seeded } from './support/dose';
import { checkInvariant, settled } from './support/invariants';
import { Lumio } from './support/lumio';
import { Traffic } from './support/traffic';

const DAY = 86_400_000;

/** Rows 11 and 12, against the whole server: what vendors and attackers do to deliveries. */
describe('hostile and untidy deliveries', () => {
  let lumio: Lumio;
  let vendors: VendorCloud;

  beforeAll(async () => {
    lumio = await Lumio.start({ env: { LUMIO_WEBHOOKS__TROVO_SECRET: 'old-secret,new-secret' } });
    vendors = new VendorCloud(lumio.base_url, lumio.credentials);
  });
  afterAll(() => lumio?.dispose());

  const trovo = (body: string, secret: string): Promise<Posted> =>
    vendors.post('/v1/webhooks/trovo', body, {
      'content-type': 'application/json',
      'x-trovo-signature': createHmac('sha256', secret).update(body).digest('hex'),
    });
  const spell = (id: string, created_at?: string) =>
    JSON.stringify({
      type: 'channel.spell',
      channel_id: lumio.credentials.connections.trovo.platform_channel_id,
      message_id: id,
      uid: '7',
      ...(created_at && { created_at }),
    });

  test('row 11: duplicates, other orders, three days late: one event each, placed by the vendor’s time', async () => {
    const random = seeded(SEED);
    const now = Date.now();
    // Each happened 20 s after the one before; the first third comes three days late. Each is delivered three times,
    // all shuffled.
    const count = dose(60, 3000);
    const told = Array.from({ length: count }, (_, n) => ({
      id: `late-w0-${n}`,
      at: new Date(now - (n < count / 3 ? 3 * DAY : DAY) + n * 20_000).toISOString(),
    }));
    const deliveries = [...told, ...told, ...told]
      .map((one) => ({ one, place: random() }))
      .sort((a, b) => a.place - b.place);
    const statuses = new Set<number>();
    const lane = async () => {
      for (let next = deliveries.shift(); next; next = deliveries.shift())
        statuses.add((await trovo(spell(next.one.id, next.one.at), 'old-secret')).status);
    };
    await Promise.all(Array.from({ length: 60 }, lane));
    expect(statuses).toEqual(new Set([200]));
    await settled(lumio, 30_000);
    const rows = await lumio.query(
      `select external_id, created_at from platform_event_logs where external_id like 'trovo:late-%' order by created_at, id`,
    );
    expect(rows.map((row) => row.external_id)).toEqual(told.map(({ id }) => `trovo:${id}`));
    expect(rows.map((row) => Date.parse(row.created_at))).toEqual(told.map(({ at }) => Date.parse(at)));
    const traffic = new Traffic(lumio, { seed: SEED });
    for (const { id } of told) traffic.sent.tried.add(id);
    await checkInvariant(lumio, traffic.sent, { excused: [] });
  });

  test('row 12: forged, stale, re-serialised, unsigned and wrong-secret deliveries are refused and leave no trace', async () => {
    const before = await counts();
    const key = createPrivateKey(lumio.credentials.webhook_signing.kick_private_key);
    const channel = Number(lumio.credentials.connections.kick.platform_channel_id);
    const body = Buffer.from(`{"broadcaster":{"user_id":${channel}},"follower":{"user_id":5,  "username":"x"}}`);
    const now = new Date().toISOString();
    const at = (ms: number) => new Date(Date.now() + ms).toISOString();
    const kick = (raw: Buffer, headers: Record<string, string>) => vendors.post('/v1/webhooks/kick', raw, headers);
    const good = kickHeaders(body, 'channel.followed', randomUUID(), now, key);
    const forged = { ...good, 'kick-event-signature': sign('sha256', Buffer.from('x'), key).toString('base64') };
    const reserialised = Buffer.from(JSON.stringify(JSON.parse(body.toString())));
    const refused: [string, Posted][] = [
      ['forged', await kick(body, forged)],
      ['re-serialised', await kick(reserialised, good)],
      ['one byte more', await kick(Buffer.concat([body, Buffer.from(' ')]), good)],
      ['stale', await kick(body, kickHeaders(body, 'channel.followed', randomUUID(), at(-6 * 60_000), key))],
      ['from the future', await kick(body, kickHeaders(body, 'channel.followed', randomUUID(), at(6 * 60_000), key))],
      ['another id', await kick(body, { ...good, 'kick-event-message-id': randomUUID() })],
      ['another time', await kick(body, { ...good, 'kick-event-message-timestamp': at(1000) })],
      ['wrong secret', await trovo(spell('forged-1'), 'other-secret')],
      ['empty secret', await trovo(spell('forged-2'), '')],
      ['no signature', await vendors.post('/v1/webhooks/trovo', spell('forged-3'), {})],
    ];
    expect(refused.filter(([, { status }]) => status !== 401 && status !== 403)).toEqual([]);
    expect(await counts()).toEqual(before);
  });

  test('row 12: while a secret is exchanged both are accepted', async () => {
    expect((await trovo(spell('rotation-1'), 'old-secret')).status).toBe(200);
    expect((await trovo(spell('rotation-2'), 'new-secret')).status).toBe(200);
    // The same delivery, signed anew after the exchange, has no second effect.
    expect((await trovo(spell('rotation-1'), 'new-secret')).status).toBe(200);
    await settled(lumio, 30_000);
    const rows = await lumio.query(`select 1 from platform_event_logs where external_id like 'trovo:rotation-%'`);
    expect(rows).toHaveLength(2);
  });

  async function counts(): Promise<unknown> {
    await settled(lumio, 30_000);
    return lumio.query(
      `select (select count(*) from broker_records) as records, (select count(*) from platform_event_logs) as events,
        (select count(*) from dead_letters) as dead, (select count(*) from ingest_dead_letters) as parked,
        (select count(*) from ledger) as ids, (select count(*) from outbox) as messages`,
    );
  }
});
