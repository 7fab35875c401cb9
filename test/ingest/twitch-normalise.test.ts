import fc from 'fast-check';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readChatRecord } from '../../domain/chat/chat-messages';
import { memberText } from '../../lib/json/members';
import { normaliseTwitch } from '../../ingest/twitch/normalise';
import { LOOK } from '../../ingest/twitch/frame';
import { ownerOf } from '../../ingest/twitch/handover/ownership';
import { readingsBefore } from '../../ingest/twitch/handover/readings';
import { SharedIds } from '../../ingest/twitch/handover/shared-ids';
import { knownAfter, NOTHING_KNOWN } from '../../ingest/twitch/looks/known';
import type { SessionState } from '../../ingest/twitch/state';
import type { Outcome } from '../../ingest/runtime/webhook/webhook';
import RECORDS from '../fixtures/twitch-records.json';
import { channelOf, SENT_AT, twitchFrame } from '../support/twitch-frames';

const NOW = Date.parse('2026-11-21T10:00:01Z');
const of = (channel_id: string) => ({ connection_id: 'c', account_id: 'a', channel_id });
const FILES = readdirSync(join(__dirname, '../fixtures/twitch')).filter((file) => file.endsWith('.json'));

function read(file: string): Outcome {
  const text = twitchFrame(file);
  return normaliseTwitch({ text, received_at: NOW, age_ms: 0 }, of(channelOf(text)));
}

const recordsOf = (file: string) => {
  const outcome = read(file);
  return outcome.kind === 'ok' ? outcome.records : [];
};
const chatOf = (file: string) => readChatRecord(recordsOf(file)[0]!);

/** Type, time, whom it is about, and everybody else; or why it is not kept. */
function told(outcome: Outcome): string[] | string {
  if (outcome.kind === 'refuse') return outcome.message;
  if (outcome.kind !== 'ok')
    return [outcome.kind, outcome.reason, ...(outcome.detail ? [outcome.detail] : [])].join(' ');
  return outcome.records.map(({ type, occurred_at, subject, subjects = [] }) =>
    [type, occurred_at, subject, ...subjects].join(' '),
  );
}

test.each(FILES)('%s is stored as the specification says', (file) => {
  expect(told(read(file))).toEqual((RECORDS as Record<string, string | string[]>)[file]);
});

test('raw is the event alone, digit for digit', () => {
  const text = twitchFrame('channel.cheer.v1.body.json').replace('"bits": 1000', '"bits": 820982911946154508 ');
  const outcome = normaliseTwitch({ text, received_at: NOW, age_ms: 0 }, of('1337'));
  expect(outcome).toMatchObject({
    records: [{ raw: expect.stringMatching(/^\{[^]*"bits": 820982911946154508 [^]*\}$/), external_id: 'twitch:m-1' }],
  });
});

test('the begin and the end of a stream have the time of their message, those of looks the time of the look', () => {
  const sent_at = new Date(SENT_AT).toISOString();
  for (const file of ['stream.online.v1.body.json', 'stream.offline.v1.body.json']) {
    const [record] = recordsOf(file);
    expect(record).toMatchObject({ reported_at: sent_at });
    expect(record).not.toHaveProperty('seen_at');
    const frame = JSON.parse(twitchFrame(file));
    frame.metadata[LOOK] = true;
    const text = JSON.stringify(frame);
    const outcome = normaliseTwitch({ text, received_at: NOW, age_ms: 0 }, of(channelOf(text)));
    expect(outcome).toMatchObject({ records: [{ seen_at: sent_at }] });
    expect(outcome).not.toMatchObject({ records: [{ reported_at: sent_at }] });
  }
  expect(recordsOf('channel.follow.v2.body.json')[0]).not.toHaveProperty('reported_at');
});

test('by a clock far behind Twitch’s, a stream ends when the report of its end is received', () => {
  const BEHIND = NOW - 3_600_000;
  const [begin, end] = ['stream.online.v1.body.json', 'stream.offline.v1.body.json'].map((file, minutes) => {
    const text = twitchFrame(file);
    const received_at = BEHIND + minutes * 60_000;
    const outcome = normaliseTwitch({ text, received_at, age_ms: 0 }, of(channelOf(text)));
    return outcome.kind === 'ok' ? outcome.records[0]! : undefined;
  });
  expect(end!.occurred_at).toBe(new Date(BEHIND + 60_000).toISOString());
  expect(Date.parse(begin!.reported_at!)).toBeLessThan(Date.parse(end!.occurred_at));
});

describe('an event that two sessions received', () => {
  const CHAT = 'channel.chat.message.v1.body.json';
  const idsOf = (file: string, message_id: string, changed: object = {}) => {
    const frame = JSON.parse(twitchFrame(file));
    frame.metadata.message_id = message_id;
    Object.assign(frame.payload.event, changed);
    const text = JSON.stringify(frame);
    const outcome = normaliseTwitch({ text, received_at: NOW, age_ms: 0 }, of(channelOf(text)));
    return outcome.kind === 'ok' ? outcome.records.map(({ external_id }) => external_id) : [];
  };

  test.each([
    [CHAT, 'message_id'],
    ['channel.chat.notification.v1.resub.body.json', 'message_id'],
    ['channel.chat.message_delete.v1.body.json', 'message_id'],
    ['channel.follow.v2.body.json', 'followed_at'],
    ['channel.channel_points_custom_reward_redemption.add.v1.body.json', 'id'],
    ['channel.ban.v1.body.json', 'banned_at'],
  ])('has one id: %s', (file, identity) => {
    const [id] = idsOf(file, 'm-1');
    expect(idsOf(file, 'm-2')).toEqual([id]);
    expect(idsOf(file, 'm-1', { [identity]: 'another' })).not.toEqual([id]);
  });

  test.each(['', null, {}])('has the id of its frame where its own is %j', (message_id) => {
    expect(idsOf(CHAT, 'm-1', { message_id })).toEqual(['twitch:m-1']);
  });
});

describe('a chat message', () => {
  test('names everybody whom its payload names, the first of a thread too', () => {
    const frame = JSON.parse(twitchFrame('channel.chat.message.v1.body.json'));
    frame.payload.event.reply = {
      ...{ parent_message_id: 'p', parent_message_body: 'hi', parent_user_id: '21', parent_user_name: 'P' },
      ...{ parent_user_login: 'p', thread_message_id: 't', thread_user_id: '22', thread_user_name: 'T' },
    };
    const text = JSON.stringify(frame);
    const outcome = normaliseTwitch({ text, received_at: NOW, age_ms: 0 }, of(channelOf(text)));
    const { chatter_user_id } = frame.payload.event;
    expect(outcome).toMatchObject({
      records: [
        {
          subject: `twitch:${chatter_user_id}`,
          subjects: expect.arrayContaining(['twitch:21', 'twitch:22']),
        },
      ],
    });
  });

  test('in a room of several channels says whose room it was said in', () => {
    expect(chatOf('channel.chat.message.v1.shared_chat.body.json')).toMatchObject({
      kind: 'message',
      roles: ['moderator', 'subscriber'],
      shared_chat: {
        channel: { id: '112233', username: 'streamer33' },
        message_id: 'e03f6d5d-8ec8-4c63-b473-9e5fe61e289b',
        badges: [{ kind: 'subscriber', id: '3', info: '3' }],
      },
    });
  });

  test('is taken apart into text, emotes with their address, mentions, links and cheermotes', () => {
    const fragments = [
      { type: 'text', text: 'see https://example.com/a, ' },
      { type: 'mention', text: '@Bob', mention: { user_id: '8', user_login: 'bob', user_name: 'Bob' } },
      { type: 'emote', text: 'Kappa', emote: { id: '25', format: ['static', 'animated'] } },
      { type: 'cheermote', text: 'Cheer100', cheermote: { prefix: 'cheer', bits: 100, tier: 100 } },
      { type: 'gif', text: 'x', gif: { id: 'g', url: 'https://gif.example/g' } },
      { type: 'hologram', text: '?' },
    ];
    const event = {
      chatter_user_id: '7',
      message_id: 'x',
      message_type: 'text',
      message: { text: fragments.map(({ text }) => text).join(''), fragments },
      cheer: { bits: 100 },
      reply: { parent_message_id: 'p', parent_message_body: 'hi', parent_user_id: '9', thread_message_id: 't' },
    };
    const metadata = { message_id: 'm', message_type: 'notification', subscription_type: 'channel.chat.message' };
    const text = JSON.stringify({ metadata, payload: { event } });
    const outcome = normaliseTwitch({ text, received_at: NOW }, of('1'));
    const [said, ...others] = outcome.kind === 'ok' ? outcome.records : [];
    expect(others).toEqual([]);
    expect(said!.first_message!()).toMatchObject({
      type: 'twitch:first_message',
      topic: 'platform-events',
      subject: 'twitch:7',
    });
    expect(said).toMatchObject({ subject: 'twitch:7', subjects: ['twitch:9', 'twitch:8'] });
    expect(readChatRecord(said!)).toMatchObject({
      parts: [
        { type: 'text', text: 'see ' },
        { type: 'link', url: 'https://example.com/a' },
        { type: 'text', text: ', ' },
        { type: 'mention', user_id: '8', username: 'bob' },
        { type: 'emote', provider: 'twitch', animated: true, url: expect.stringContaining('/25/') },
        { type: 'cheermote', prefix: 'cheer', bits: 100, tier: 100 },
        { type: 'gif', id: 'g', url: 'https://gif.example/g' },
        { type: 'text', text: '?' },
      ],
      paid: { kind: 'bits', amount_minor: 100, currency: 'BITS' },
      reply: { message_id: 'p', text: 'hi', author: { id: '9' }, thread_message_id: 't' },
    });
  });

  test('by somebody who is new to another channel of a shared chat is no first message here', () => {
    const frame = JSON.parse(twitchFrame('channel.chat.message.v1.shared_chat.body.json'));
    const events = (event: object) => {
      const text = JSON.stringify({ ...frame, payload: { event } });
      const outcome = normaliseTwitch({ text, received_at: NOW, age_ms: 0 }, of(channelOf(text)));
      return (outcome.kind === 'ok' ? outcome.records : []).map(({ first_message }) => first_message?.().type);
    };
    const { event } = frame.payload;
    expect(events(event)).toEqual([undefined]);
    expect(events({ ...event, source_broadcaster_user_id: event.broadcaster_user_id })).toEqual([
      'twitch:first_message',
    ]);
  });

  test('has bits however their number is written', () => {
    const event = { chatter_user_id: '7', message_id: 'x', message: { text: 'Cheer100' }, cheer: { bits: '100' } };
    const metadata = { message_id: 'm', message_type: 'notification', subscription_type: 'channel.chat.message' };
    const text = JSON.stringify({ metadata, payload: { event } });
    const outcome = normaliseTwitch({ text, received_at: NOW }, of('1'));
    const [said] = outcome.kind === 'ok' ? outcome.records : [];
    expect(readChatRecord(said!)).toMatchObject({ paid: { kind: 'bits', amount_minor: 100 } });
  });

  test('said with /me is an act, without the mark that it is delivered with', () => {
    expect(chatOf('channel.chat.message.action.event.json')).toMatchObject({
      action: true,
      text: 'chat test',
      parts: [{ type: 'text', text: 'chat test' }],
      roles: ['broadcaster'],
    });
    expect(chatOf('channel.chat.message.v1.body.json')).toMatchObject({ action: false });
  });

  test('of a kind that is not known is kept with what it says', () => {
    expect(chatOf('channel.chat.notification.v1.modiversary.body.json')).toMatchObject({
      message_type: 'modiversary',
      text: 'This is a test Kappa',
      system_text: 'has been a moderator for 48 months!',
      raw: { modiversary: { months: 48 } },
    });
  });
});

test.each([
  ['channel.moderate.timeout.captured.ws.json', { action: 'timeout', ends_at: '2024-11-27T20:01:55.358Z' }],
  ['channel.ban.v1.body.json', { action: 'timeout', duration_secs: 60, reason: 'Offensive language' }],
  ['channel.ban.cli.body.json', { action: expect.stringMatching(/ban|timeout/) }],
  ['channel.moderate.delete_long.event.json', { action: 'delete', message_id: '4b596dd8-8ab1-4ea1-9f1f-d0b5e1dc9868' }],
  ['channel.moderate.add_blocked_term.event.json', { action: 'add_blocked_term', text: 'my phrase', target: null }],
  ['channel.moderate.shared_ban_reason.event.json', { shared_chat: { channel: { id: '900000002' } } }],
  ['channel.suspicious_user.update.no_treatment.event.json', { user_treatment: 'none' }],
  ['channel.suspicious_user.message.monitored.event.json', { user_treatment: 'active_monitoring' }],
])('%s says %p', (file, expected) => {
  expect(chatOf(file)).toMatchObject(expected);
});

describe('a moderation of Twitch', () => {
  const NONE = [null, undefined, '', 0, '0', '0001-01-01T00:00:00Z', '1970-01-01T00:00:00Z'];
  const acted = (file: string, change: (event: any) => void) => {
    const frame = JSON.parse(twitchFrame(file)) as { payload: { event: object } };
    change(frame.payload.event);
    const text = JSON.stringify(frame);
    const outcome = normaliseTwitch({ text, received_at: NOW, age_ms: 0 }, of(channelOf(text)));
    const [record] = outcome.kind === 'ok' ? outcome.records : [];
    return readChatRecord(record!);
  };

  test.each([...NONE, '2019-01-01T00:00:00Z'])('of channel.ban with the end %p is a ban', (ends_at) =>
    expect(
      acted('channel.ban.v1.body.json', (event) => Object.assign(event, { ends_at, is_permanent: false })),
    ).toMatchObject({
      action: 'ban',
      duration_secs: null,
      ends_at: null,
    }),
  );

  test.each(NONE)('of channel.ban at %p has the length from the time of its message', (banned_at) => {
    const frame = JSON.parse(twitchFrame('channel.ban.v1.body.json')) as { metadata: { message_timestamp: string } };
    const ends_at = new Date(Date.parse(frame.metadata.message_timestamp) + 600_000).toISOString();
    const change = { banned_at, ends_at, is_permanent: false };
    expect(acted('channel.ban.v1.body.json', (event) => Object.assign(event, change))).toMatchObject({
      ...{ action: 'timeout', ends_at },
      duration_secs: 600,
    });
  });

  test.each(NONE)('of channel.moderate with the end %p has none', (expires_at) =>
    expect(
      acted('channel.moderate.timeout.captured.ws.json', ({ timeout }) => Object.assign(timeout, { expires_at })),
    ).toMatchObject({ action: 'timeout', duration_secs: null, ends_at: null }),
  );
});

describe('whatever arrives', () => {
  const frames = FILES.map((file) => twitchFrame(file));

  test('never makes the normaliser throw', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(['ok', 'skip', 'park']).toContain(normaliseTwitch({ text, received_at: NOW }, of('1')).kind);
      }),
    );
    fc.assert(
      fc.property(fc.constantFrom(...frames), fc.nat(), fc.nat(20), fc.string(), (text, at, cut, put) => {
        const from = at % text.length;
        const bent = text.slice(0, from) + put + text.slice(from + cut);
        expect(['ok', 'skip', 'park']).toContain(normaliseTwitch({ text: bent, received_at: NOW }, of('1')).kind);
      }),
    );
  });

  test('has the value of a member as its text, as JSON.parse would have it', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), fc.nat(3), (others, value, blanks) => {
        const text = JSON.stringify({ ...others, payload: { ...others, event: value } }, null, blanks);
        const found = memberText(text, ['payload', 'event']);
        expect(JSON.parse(found!)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test.each([
    ['{"payload":{"event":{"n":1}},"payload":{"event":{"n":2},"x":"}"}}', '{"n":2}'],
    ['{"payload":{"event":1,"event":[{"event":2}]},"z":{"payload":{"event":3}}}', '[{"event":2}]'],
    ['{"payload":{"event":1},"payload":{}}', undefined],
    ['{"payload":{"event":1},"payload":"event"}', undefined],
    ['{"payload":{"x":{"event":1}}}', undefined],
    ['{}', undefined],
    ['["payload"]', undefined],
  ])('of members of one name the last counts, and none of another place: %s', (text, found) => {
    expect(memberText(text, ['payload', 'event'])).toBe(found);
    const { payload } = JSON.parse(text) as { payload?: { event?: unknown } };
    expect(found && JSON.parse(found)).toEqual(payload?.event);
  });
});

describe('the owner of a message that a paused process received', () => {
  const at = (second: number) => `2026-11-21T10:00:${second}.500000000Z`;
  const TYPE = 'channel.cheer';
  const session = (second: number, holding: number, before: SessionState | null): SessionState => ({
    session_id: String(second),
    since: { [TYPE]: at(second) },
    known: NOTHING_KNOWN,
    holding,
    readings: readingsBefore(before),
  });
  const frame = (sent_at: string, type = TYPE, bits = 1) => {
    const metadata = { message_id: sent_at, message_type: 'notification', message_timestamp: sent_at };
    const subscription = { id: 'own', type, condition: { broadcaster_user_id: '1' } };
    const text = JSON.stringify({
      metadata: { ...metadata, subscription_type: type },
      payload: { subscription, event: { bits } },
    });
    return { text, received_at: 0 };
  };
  const own = session(20, 2, session(10, 1, null));
  const owner = (sent_at: string, state: SessionState, type = TYPE) =>
    ownerOf(frame(sent_at, type), state, 2, new SharedIds());
  const OWNERS = ['former', 'successor', 'successor', 'successor'];

  test('is the first later holder from its subscription on, however often the connection has moved since', () => {
    const follower = session(30, 3, own);
    const holder = session(50, 5, session(40, 4, follower));
    for (const state of [follower, holder]) expect([25, 35, 45, 55].map((n) => owner(at(n), state))).toEqual(OWNERS);
    const many = [...Array(20).keys()].reduce((state, n) => session(50, 6 + n, state), holder);
    expect(many.readings).toHaveLength(8);
  });

  test('is the first later holder, whichever of both has opened the channel again', () => {
    const again = session(35, 2, own);
    const follower = session(50, 3, session(30, 3, own));
    expect([25, 32, 36, 55].map((n) => owner(at(n), session(30, 3, again)))).toEqual(OWNERS);
    expect([25, 35, 45, 55].map((n) => owner(at(n), follower))).toEqual(OWNERS);
    expect(session(55, 3, follower).readings.filter(({ holding }) => holding === 3)).toEqual([
      { holding: 3, since: { [TYPE]: at(30) } },
    ]);
  });

  test('is the former holder for a type that no later holder receives', () => {
    expect(owner(at(45), session(30, 3, own), 'channel.update')).toBe('former');
  });

  test('is the former holder after the end of a session that was never completely open', () => {
    const failed = { holding: 3, since: { [TYPE]: at(30) }, until: at(40) };
    const state = { ...session(50, 3, own), readings: [...readingsBefore(own), failed] };
    expect([25, 35, 45, 55].map((n) => owner(at(n), state))).toEqual([...OWNERS.slice(0, 2), 'former', 'successor']);
  });

  test('is the present holder where its state has no number of a holding', () => {
    const { holding: _holding, readings: _readings, ...kept } = session(30, 3, own);
    expect([25, 35].map((n) => ownerOf(frame(at(n)), kept, 2, new SharedIds()))).toEqual(['former', 'successor']);
  });

  test('is both, under one id for each event, within a second of the subscription', () => {
    const shared = new SharedIds();
    const state = session(30, 3, own);
    const near = ['2026-11-21T10:00:29.500Z', '2026-11-21T10:00:30.4Z', '2026-11-21T10:00:31.500Z'];
    const ids = near.map((sent_at) => ownerOf(frame(sent_at), state, 2, shared)) as { shared_id: string }[];
    expect(new Set(ids.map(({ shared_id }) => shared_id)).size).toBe(3);
    expect(ownerOf(frame(near[1]!), state, 2, shared)).toEqual(ids[1]);
    expect(ownerOf(frame('2026-11-21T10:00:31.501Z', TYPE, 2), state, 2, shared)).toBe('successor');
    expect(ownerOf(frame('2026-11-21T10:00:29.499Z', TYPE, 2), state, 2, shared)).toBe('former');
  });
});

describe('the known state of a channel', () => {
  const at = (second: number) => new Date(Date.UTC(2026, 0, 1) + second * 1000).toISOString();
  const after = (...reports: (readonly [type: string, id: string | null, second: number])[]) =>
    reports.reduce((known, [type, id, second]) => knownAfter(known, type, { id }, at(second)), NOTHING_KNOWN);

  test.each([
    ['channel.hype_train', 'begin', 'hype_train', 'b'],
    ['channel.poll', 'begin', 'poll', 'b'],
    ['channel.prediction', 'lock', 'prediction', 'locked:b'],
  ] as const)(
    '%s: neither the end of another one nor progress after its own end changes the state',
    (of, phase, name, b) => {
      const begun = [[`${of}.begin`, 'a', 0], [`${of}.${phase}`, 'b', 1]] as const; // prettier-ignore
      expect(after(...begun, [`${of}.end`, 'a', 2])[name]).toBe(b);
      expect(after(...begun, [`${of}.end`, 'a', 2], [`${of}.progress`, 'a', 3])[name]).toBe(b);
      expect(after(...begun, [`${of}.end`, 'b', 2])[name]).toBeNull();
      expect(after(...begun, [`${of}.end`, 'b', 2], [`${of}.progress`, 'b', 3])[name]).toBeNull();
    },
  );

  test('the stream is that of the newest report, in any order', () => {
    const [begun, again] = [['stream.online', 's', 2], ['stream.online', 's', 4]] as const; // prettier-ignore
    const stray = ['stream.offline', null, 1] as const;
    expect(after(stray, begun).stream).toBe('s');
    expect(after(begun, stray).stream).toBe('s');
    expect(after(begun, ['stream.offline', null, 3]).stream).toBeNull();
    expect(after(['stream.offline', null, 3], begun).stream).toBeNull();
    expect(after(begun, ['stream.offline', null, 3], again)).toMatchObject({ stream: 's', ended: [] });
  });
});
