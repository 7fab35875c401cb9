import { createAudience } from '../../demo/audience';
import { createDeliveries } from '../../demo/deliveries';
import { createStory, seeded, type Beat } from '../../demo/story';
import { webhookRoutes } from '../../ingest/runtime/webhook/webhooks';
import { silentLog } from '../support/log';
import * as support from '../support/webhooks';

const HOUR_MS = 3_600_000;

const beats = (seed: number, count: number): Beat[] => {
  const story = createStory(seed);
  return Array.from({ length: count }, () => story.next());
};

test('a seed tells its story again, another seed another one', () => {
  expect(beats(7, 500)).toEqual(beats(7, 500));
  expect(beats(7, 50)).not.toEqual(beats(8, 50));
  const random = seeded(1);
  const sample = Array.from({ length: 10_000 }, random);
  expect(Math.abs(sample.reduce((sum, value) => sum + value, 0) / sample.length - 0.5)).toBeLessThan(0.02);
});

test('a story has everything in it, and the stream goes on and off in turn', () => {
  const told = beats(7, 5000);
  expect(new Set(told.map((beat) => beat.kind)).size).toBe(14);
  const lives = told.flatMap((beat) => (beat.kind === 'stream' ? [beat.is_live] : []));
  expect(lives.every((is_live, index) => is_live === (index % 2 === 0))).toBe(true);
});

test('pauses keep the rate, about', () => {
  const story = createStory(7);
  let seconds = 0;
  for (let count = 0; count < 5000; count += 1) {
    seconds += story.pause(10);
    story.next();
  }
  expect(5000 / seconds).toBeGreaterThan(8);
  expect(5000 / seconds).toBeLessThan(25);
});

test('a sample of viewers that cannot be appended is reported, and appended with the next beat', async () => {
  let fails = true;
  let tries = 0;
  const append = async () => {
    tries += 1;
    if (fails) throw new Error('no broker');
    return [];
  };
  const play = createAudience({ append } as never, {
    account_id: 'a',
    connections: { kick: { platform_channel_id: '4242' } },
  });
  const problem = (beat: Beat) => new Promise<string>((resolve) => void play(beat, resolve));
  const live = beats(7, 5000).find((beat) => beat.kind === 'stream' && beat.is_live)!;
  expect(await problem({ ...live, started_at: '2026-01-02T03:04:05.000Z' } as Beat)).toMatch(/viewers: no broker$/);
  fails = false;
  const problems: string[] = [];
  play(
    beats(7, 5000).find((beat) => beat.kind !== 'stream')!,
    (one) => problems.push(one),
  );
  await new Promise(setImmediate);
  expect([tries, problems]).toEqual([2, []]);
});

test('the webhooks take every delivery of it, once each', async () => {
  const records = support.keptRecords();
  const park = async () => {
    throw new Error('nothing of the demo is parked');
  };
  const shop_domain = 'lumio-demo.myshopify.com';
  const accounts = { 'kick:4242': ['a'], 'youtube:UCdemo': ['a'], 'trovo:100000021': ['a'], [shop_domain]: ['a'] };
  const routes = webhookRoutes({
    settings: support.webhookSettings(),
    paypal: null,
    connections: support.connectionsOf(accounts, support.signing.shop_secret),
    records,
    parked: { park },
    log: silentLog,
    metrics: support.keptMetrics(),
  });
  const { youtube_secret, trovo_secret, kick_secret } = support.signing.settings;
  const deliveries = createDeliveries({
    base_url: 'http://127.0.0.1:7070',
    user_api_key: 'lm_usr_test',
    connections: {
      kick: { platform_channel_id: '4242' },
      youtube: { platform_channel_id: 'UCdemo' },
      trovo: { platform_channel_id: '100000021' },
      shopify: { shop_domain },
    },
    webhook_signing: {
      youtube_secret,
      trovo_secret,
      kick_secret,
      shopify_secret: support.signing.shop_secret,
      kick_private_key: support.signing.kick_private_key.export({ type: 'pkcs8', format: 'pem' }).toString(),
    },
  });
  let emitted = 0;
  // A vendor's stream is known by the second in which it began: each of the story's began an hour before the next.
  let began_at = Date.now() - 1500 * HOUR_MS;
  for (const beat of beats(7, 1500)) {
    if (beat.kind === 'stream' && beat.is_live) began_at += HOUR_MS;
    const started_at = new Date(began_at).toISOString();
    for (const request of deliveries(beat.kind === 'stream' ? { ...beat, started_at } : beat)) {
      if (request.path.startsWith('/v1/events/')) {
        emitted += 1;
        continue;
      }
      await support.deliver(routes, request.path, Buffer.from(request.body), request.headers);
    }
  }
  expect(emitted).toBeGreaterThan(50);
  expect([...new Set(records.kept.map((record) => record.type))].sort()).toEqual([
    'kick:chat',
    'kick:follower',
    'kick:gift',
    'kick:moderation',
    'kick:stream_offline',
    'kick:stream_online',
    'kick:subscribe',
    'shopify:order',
    'shopify:order_paid',
    'shopify:product',
    'trovo:spell',
    'trovo:subscribe',
    'youtube:subscribe',
  ]);
  const ids = records.kept.map((record) => record.external_id);
  expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([]);
  expect(
    records.kept.filter((record) => record.platform === 'shopify').every((record) => /"id":\d{17,}/.test(record.raw)),
  ).toBe(true);
});
