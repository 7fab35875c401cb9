import { createLocalRelay } from '../../engines/relay/local';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import type { Relay } from '../../engines/relay/port';
import { shardOf } from '../../lib/hash/shards';
import { SubscribedChannels } from '../../realtime/runtime/delivery/subscribed-channels';
import {
  MESSAGE_BYTES,
  MESSAGES_PER_SECOND,
  TransientReceiver,
  TransientSender,
} from '../../realtime/runtime/relay/transient';
import { silentLog } from '../support/log';
import { until } from '../support/projections';

const HERE = 'chat:0190a000-0000-7000-8000-000000000001';
const THERE = 'chat:0190a000-0000-7000-8000-000000000002';

/** A sender and the receiver of a node on one relay, which keeps its topics. */
function pair(before = false) {
  const local = createLocalRelay();
  const topics: string[] = [];
  const heard_topics = new Set<string>();
  const relay: Relay = {
    ...local,
    publish(topic, message) {
      topics.push(topic);
      return local.publish(topic, message);
    },
    subscribe(topic, handler) {
      heard_topics.add(topic);
      const end = local.subscribe(topic, handler);
      return () => {
        heard_topics.delete(topic);
        end();
      };
    },
  };
  const metrics = createPrometheusMetrics({});
  const got: [string, string][] = [];
  let now = 0;
  const clock = { metrics, relay, now: () => now };
  const receiver = new TransientReceiver({ ...clock, log: silentLog, deliver: (...one) => void got.push(one) });
  const senderOf = () => new TransientSender({ ...clock, older_nodes_connected: async () => before });
  const channels = new SubscribedChannels<true>();
  channels.onShard = (shard, wanted) => receiver.listen(shard, wanted);
  const dropped = async () => (await metrics.render()).match(/transient_dropped_total\{.*/g) ?? [];
  const wait = (ms: number) => (now += ms);
  return { local, topics, heard_topics, got, receiver, senderOf, channels, dropped, wait };
}

test('a message goes to the topic of its shard, which is heard while there is a channel of it here', async () => {
  const { senderOf, channels, got, topics, heard_topics, receiver } = pair();
  const sender = senderOf();
  channels.set(HERE, true).set(HERE.replace('chat', 'events'), true);
  expect([...heard_topics]).toEqual(['live', `live:${shardOf(HERE)}`]);
  const text = '{"type":"event","data":"a\\nb\\"c"}';
  await sender.publish(HERE, text);
  await sender.publish(THERE, text);
  await until(() => got.length > 0);
  expect(got).toEqual([[HERE, text]]);
  expect(topics).toEqual([`live:${shardOf(HERE)}`, `live:${shardOf(THERE)}`]);
  channels.delete(HERE);
  expect(heard_topics.size).toBe(2);
  channels.clear();
  expect([...heard_topics]).toEqual(['live']);
  receiver.stop();
  expect(heard_topics.size).toBe(0);
});

test('what is over 64 KiB, or over 200 a second of one account, is dropped and counted; others do not suffer', async () => {
  const { senderOf, channels, got, dropped, wait } = pair();
  const sender = senderOf();
  channels.set(HERE, true).set(THERE, true);
  await sender.publish(HERE, 'x'.repeat(MESSAGE_BYTES));
  await sender.publish(HERE, 'ä'.repeat(MESSAGE_BYTES / 2) + 'x');
  for (let n = 1; n <= MESSAGES_PER_SECOND; n += 1) await sender.publish(HERE, String(n));
  await sender.publish(THERE, 'there');
  await until(() => got.length === MESSAGES_PER_SECOND + 1);
  expect(got.filter(([channel]) => channel === THERE)).toEqual([[THERE, 'there']]);
  expect((await dropped()).sort()).toEqual([
    'transient_dropped_total{reason="too_large"} 1',
    'transient_dropped_total{reason="too_many"} 1',
  ]);
  wait(1_000);
  await sender.publish(HERE, 'next');
  await until(() => got.at(-1)?.[1] === 'next');
});

test('what several nodes send together is held to the same', async () => {
  const { senderOf, channels, got, dropped } = pair();
  channels.set(HERE, true);
  const [one, other] = [senderOf(), senderOf()];
  for (let n = 0; n < 150; n += 1) await Promise.all([one.publish(HERE, 'a'), other.publish(HERE, 'b')]);
  await until(async () => (await dropped())[0] === 'transient_dropped_total{reason="too_many"} 100');
  expect(got).toHaveLength(MESSAGES_PER_SECOND);
});

test('beside nodes of a build before, both hear each message once', async () => {
  const { senderOf, channels, got, local, topics } = pair(true);
  channels.set(HERE, true);
  const heard_before: string[] = [];
  local.subscribe('live', (text) => {
    const { channel, message } = JSON.parse(text) as { channel: string; message: string };
    heard_before.push(`${channel} ${message}`);
  });
  await senderOf().publish(HERE, 'new');
  await local.publish('live', JSON.stringify({ channel: HERE, message: 'old' }));
  await until(() => heard_before.length === 2);
  expect(heard_before).toEqual([`${HERE} new`, `${HERE} old`]);
  expect(got.map(([, message]) => message)).toEqual(['new', 'old']);
  expect(topics).toEqual([`live:${shardOf(HERE)}`, 'live']);
});
