import { uuid } from '../support/identity';
import { ACCOUNT, publish } from '../support/realtime';
import { anonymous, as, broadcastAs, EVENTS, INSTALL, may, nextEvent, node, open, verdict, world } from './house';
import { GATES } from './gates';
import { type Proof, type Proofs, type Row, SPEC } from './spec';

const NAMED: Readonly<Record<string, string>> = {
  'overlay:<key>': 'overlay:k1',
  'widget:<widget_instance_id>': 'widget:w1',
  'ext-storage:<install_id>': `ext-storage:${INSTALL}`,
  'presence:<resource_channel>': `presence:${EVENTS}`,
  'ext-logs:<extension_id>': `ext-logs:${INSTALL}`,
  'ideas:list': 'ideas:list',
  'ideas:<idea_id>': `ideas:${INSTALL}`,
  'public-stats:<platform>:<broadcast_id>': 'public-stats:kick:99',
  'login-assignments:<id>': `login-assignments:${ACCOUNT}`,
};
const nameOf = (pattern: string): string => NAMED[pattern] ?? pattern.replace('<account_id>', ACCOUNT);

const channelRow: Proof = async (row) => {
  const name = nameOf(row.channel);
  const { in: passing, out } = await GATES[row.gate]!(row, name);
  for (const client of passing) expect([name, await verdict(client, name)]).toEqual([name, 'subscribed']);
  const refusing = row.gate.startsWith('Public') ? out : [...out, await anonymous()];
  for (const client of refusing) expect([name, await verdict(client, name)]).toEqual([name, 'UNAUTHORIZED']);

  const listener = passing[0]!;
  const from = listener.messages.length;
  await publish(world.t, node, name, [{ n: 1 }]);
  const got = await listener.next(({ id }) => id !== undefined, 'what is published', from);
  expect(got).toMatchObject({ channel: name, event_type: 'kick:follower', data: { n: 1 } });

  for (const flag of [row.feature, row.gate_flag].filter((one) => one !== undefined && one !== 'none')) {
    node.off.add(flag);
    const [allowed] = (await GATES[row.gate]!(row, name)).in;
    expect([flag, await verdict(allowed!, name)]).toEqual([flag, 'FEATURE_DISABLED']);
    node.off.clear();
  }

  const writer = await may(...(row.write_permission ? [row.write_permission] : ['events:create', 'chat:write']));
  if (row.write_permission === undefined) {
    expect((await broadcastAs(writer, name)).code).toBe('UNAUTHORIZED');
    return;
  }
  expect((await broadcastAs(await may(row.permission), name)).code).toBe('UNAUTHORIZED');
  const before = listener.messages.length;
  writer.send({ type: 'broadcast', channel: name, payload: '{"type":"raffle","n":3}' });
  expect(await nextEvent(listener, before)).toEqual({
    type: 'event',
    channel: name,
    event_type: 'raffle',
    data: { type: 'raffle', n: 3 },
  });
};

/** A stored message of the family in the envelope of the row; `channel` and `event_type` always (rulings c31, c32). */
const envelopeRow: Proof = async (row) => {
  const name = nameOf(row.internal_channel);
  const gate = (SPEC.channels as Row[]).find(({ channel }) => channel === row.internal_channel)!;
  const [client] = (await GATES[gate.gate]!(gate, name)).in;
  expect(await verdict(client!, nameOf(row.delivered_on.replace('widget:<id>', 'widget:<widget_instance_id>')))).toBe(
    'subscribed',
  );
  const [, type] = /type: '([^']+)'/.exec(row.envelope)!;
  const event_type = row.event_type?.[0] ?? row.event_type_default ?? row.event_type_examples?.[0] ?? 'kick:follower';
  const data = { type: 'kick:follower', event_type: 'own', payload: { username: 'ada' }, n: 1 };
  await publish(world.t, node, name, [data], event_type);
  const { id, ...sent } = await nextEvent(client!);
  expect(id).toMatch(/^[0-9a-f]{12}-\d+$/);
  // Exactly what was published, whatever members it has.
  expect(sent).toEqual({ type, channel: name, event_type, data });
};

const chatRow: Proof = async ({ data_type, payload }) => {
  const client = await may('chat:read');
  const channel = `chat:${ACCOUNT}`;
  await client.subscribe(channel);
  const type = data_type.startsWith('absent') ? undefined : data_type;
  const data = { n: 1, payload, ...(type && { type }) };
  await publish(world.t, node, channel, [data], type ?? 'chat:message');
  const sent = await nextEvent(client);
  expect(sent).toMatchObject({ type: 'chat:message', channel });
  expect(sent.data).toEqual(data);
};

/** Each family of channels, and what goes out on it. */
export const CHANNEL_FAMILIES: Record<string, Proofs> = {
  channels: Object.fromEntries((SPEC.channels as Row[]).map(({ channel }) => [channel, channelRow])),

  presence: {
    async presence({ events }) {
      const name = `presence:${EVENTS}`;
      const [first, second] = [await as({ user_id: uuid(70) }), await as({ user_id: null })];
      for (const client of [first, second]) {
        expect(await verdict(client, name)).toBe('subscribed');
        await client.next(({ event_type }) => event_type === 'presence:bootstrap', 'the list');
      }
      const { data } = await second.next(({ event_type }) => event_type === 'presence:bootstrap', 'the list');
      const there = data!.connections as unknown as Row[];
      expect(there).toHaveLength(2);
      for (const one of there) {
        expect(Object.keys(one).sort()).toEqual(['account_id', 'avatar', 'connection_id', 'display_name', 'user_id']);
      }
      second.end();
      for (const event_type of events as string[])
        expect(await first.next((message) => message.event_type === event_type, event_type)).toMatchObject({
          type: 'event',
          channel: name,
          data: { account_id: ACCOUNT },
        });
    },
  },

  public_stats_channel: {
    async public_stats_channel({ clients_publish }) {
      const client = await anonymous();
      for (const id of ['unknown', 'shown']) await client.subscribe(`public-stats:kick:${id}`);
      expect(await nextEvent(client)).toMatchObject({ channel: 'public-stats:kick:shown', data: { viewers: 7 } });
      expect(client.messages.filter(({ type }) => type === 'event')).toHaveLength(1);
      expect(clients_publish).toBe(false);
      expect((await broadcastAs(await may('public-stats:edit'), 'public-stats:kick:shown')).code).toBe('UNAUTHORIZED');
    },
  },

  relay_rules: {
    async 'pub/sub to WebSocket, one way. Only these internal channel prefixes are relayed.'() {
      const client = await open();
      await publish(world.t, node, `ext:${INSTALL}`, [{ n: 1 }]);
      expect(await verdict(client, `ext:${INSTALL}`)).toBe('UNAUTHORIZED');
    },
    "For the four legacy families `data` is exactly what the publisher sent (including its own `type`, `event_type`, `payload`); for the others the relay lifts `event_type` out of the payload and forwards the payload's `data`.":
      async () => {
        for (const row of SPEC.relay_envelopes as Row[]) await envelopeRow(row);
      },
  },
  relay_envelopes: Object.fromEntries(
    (SPEC.relay_envelopes as Row[]).map(({ internal_channel }) => [internal_channel, envelopeRow]),
  ),
  relay_example: {
    async relay_example() {
      const client = await open();
      await client.subscribe(EVENTS);
      const data = { n: 0, type: 'twitch:follower', payload: { username: 'ada' } };
      await publish(world.t, node, EVENTS, [data], 'twitch:follower');
      expect(await nextEvent(client)).toMatchObject({ type: 'event', data });
    },
  },
  chat_sub_types: Object.fromEntries((SPEC.chat_sub_types as Row[]).map(({ data_type }) => [data_type, chatRow])),
  chat_dispatch_rule: {
    async chat_dispatch_rule() {
      for (const row of SPEC.chat_sub_types as Row[]) await chatRow(row);
    },
  },
};
