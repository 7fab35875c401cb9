import fc from 'fast-check';
import { readChatRecord } from '../../domain/chat/chat-messages';
import { textOfParts, textParts } from '../../domain/chat/chat-text';
import { objectsAt } from '../../lib/json/digits';
import { JsonObjects } from '../../lib/json/objects';
import { normaliseKick } from '../../ingest/kick/webhook';
import { normaliseTrovoChat } from '../../ingest/trovo/chat';
import { normaliseYoutubeChat } from '../../ingest/youtube/chat';
import { type DraftRecord, type Outcome, toDelivery } from '../../ingest/runtime/webhook/webhook';
import { fixture } from '../support/webhooks';

const NOW = Date.parse('2026-11-21T10:00:00Z');
const connection = { connection_id: 'c', account_id: 'a', channel_id: 'UCowner' };
const recordsOf = (outcome: Outcome): DraftRecord[] => (outcome.kind === 'ok' ? outcome.records : []);
const chatOf = (records: readonly DraftRecord[]) =>
  records.flatMap((record) => (record.topic === 'chat-events' ? [readChatRecord(record)] : []))[0];

describe('youtube', () => {
  const items = (name: string) => objectsAt(fixture('youtube', name).toString(), ['items']);
  const read = (text: string) => normaliseYoutubeChat({ text, received_at: NOW }, connection);
  const of = (name: string) => recordsOf(read(items(name)[0]!));

  test('a page with all kinds of items is stored as the specification says', () => {
    const stored = items('livechat.list.page_all_types.json').flatMap((text) =>
      recordsOf(read(text)).map(({ type, external_id, subject, subjects, occurred_at }) => [
        type,
        external_id,
        subject,
        subjects,
        occurred_at.slice(11, 19),
      ]),
    );
    expect(stored).toEqual([
      ['youtube:chat', 'youtube:text', 'youtube:UCviewer', undefined, '19:00:01'],
      ['youtube:superchat', 'youtube:superchat', 'youtube:UCfan', undefined, '19:00:02'],
      ['youtube:chat', 'youtube:superchat', 'youtube:UCfan', undefined, '19:00:02'],
      ['youtube:supersticker', 'youtube:sticker', 'youtube:UCfan', undefined, '19:00:03'],
      ['youtube:chat', 'youtube:sticker', 'youtube:UCfan', undefined, '19:00:03'],
      ['youtube:member', 'youtube:milestone', 'youtube:UCmember', undefined, '19:00:04'],
      ['youtube:chat', 'youtube:milestone', 'youtube:UCmember', undefined, '19:00:04'],
      ['youtube:member', 'youtube:sponsor', 'youtube:UCnew', undefined, '19:00:05'],
      ['youtube:gift_membership', 'youtube:gifting', 'youtube:UCgiver', undefined, '19:00:06'],
      ['youtube:moderation', 'youtube:banned', 'youtube:UCtroll', ['youtube:UCowner'], '19:00:07'],
      ['youtube:moderation', 'youtube:deleted', 'youtube:UCowner', undefined, '19:00:08'],
      ['youtube:moderation', 'youtube:retracted', 'youtube:UCviewer', undefined, '19:00:09'],
    ]);
    expect(read(items('livechat.list.page_all_types.json').at(-1)!)).toEqual({
      kind: 'park',
      reason: 'unknown_type',
      detail: 'someFutureEvent',
    });
  });

  test.each(['livechat.list.page_all_types.json', 'livechat.list.superChatEvent.number_amount.json'])(
    'the amount in %s is in minor units',
    (name) => {
      const superchat = items(name).find((text) => text.includes('superChatEvent'))!;
      expect(chatOf(recordsOf(read(superchat)))).toMatchObject({
        message_type: 'superchat',
        text: expect.stringMatching(/^great stream!?$/),
        paid: { kind: 'superchat', amount_minor: 500, currency: 'USD', display: '$5.00', tier: 2, sticker_id: null },
      });
    },
  );

  test('a ban for a time is a timeout, a message has its author and roles', () => {
    const banned = fixture('youtube', 'livechat.item.userBannedEvent.json').toString();
    expect(chatOf(recordsOf(read(banned)))).toMatchObject({
      action: 'timeout',
      duration_secs: 300,
      target: { id: 'UCtroll', display_name: 'Troll' },
      moderator: { id: 'UCowner' },
    });
    const text = fixture('youtube', 'livechat.item.textMessageEvent.json').toString();
    expect(chatOf(recordsOf(read(text)))).toMatchObject({
      text: 'hello',
      live_chat_id: 'KicKGFVDYWJj',
      roles: ['moderator', 'subscriber'],
      author: { id: 'UCviewer', display_name: 'Viewer', avatar_url: 'https://yt3.ggpht.com/viewer.jpg' },
    });
  });

  test.each(['null', '""', '"0"', '0', '-1'])('a timeout of %s seconds has no known length', (seconds) => {
    const banned = fixture('youtube', 'livechat.item.userBannedEvent.json').toString();
    const without = banned.replace(/"banDurationSeconds":\s*"?300"?/, `"banDurationSeconds": ${seconds}`);
    expect(without).not.toBe(banned);
    expect(chatOf(recordsOf(read(without)))).toMatchObject({ action: 'timeout', duration_secs: null });
  });

  test('a poll is stored once in each of its states, and with each count of its votes', () => {
    const poll = (status: string, ...tallies: unknown[]) => {
      const metadata = { status, options: tallies.map((tally) => ({ optionText: 'o', tally })) };
      return recordsOf(read(JSON.stringify({ id: 'p', snippet: { type: 'pollEvent', pollDetails: { metadata } } })));
    };
    const told = [
      ...poll('active'),
      ...poll('active', undefined, undefined),
      ...poll('active', '1', 0),
      ...poll('active', '1', 2),
      ...poll('closed', '1', 2),
    ];
    expect(told.map(({ type, external_id }) => [type, external_id])).toEqual([
      ['youtube:poll', 'youtube:p:active'],
      ['youtube:poll', 'youtube:p:active'],
      ['youtube:poll', 'youtube:p:active:1-0'],
      ['youtube:poll', 'youtube:p:active:1-2'],
      ['youtube:poll', 'youtube:p:closed:1-2'],
    ]);
  });

  test('who gave a membership is named beside who got it', () => {
    expect(of('livechat.list.giftMembershipReceivedEvent.json')).toMatchObject([
      { type: 'youtube:gift_membership_received', subject: 'youtube:UCrecipient', subjects: ['youtube:UCgifter'] },
    ]);
  });
});

describe('trovo', () => {
  const read = (text: string) => normaliseTrovoChat({ text, received_at: NOW }, { ...connection, channel_id: '12345' });
  test.each([
    ['chat.item.follow_5003.json', 'trovo:follower', 'trovo:uid_follow'],
    ['chat.item.gift_sub_5005.json', 'trovo:subscribe', 'trovo:uid_gifter'],
    ['chat.item.subscription_5001.json', 'trovo:subscribe', 'trovo:uid_sub'],
  ])('%s is %s', (name, type, subject) => {
    const text = fixture('trovo', name).toString();
    expect(recordsOf(read(text))).toMatchObject([
      { type, subject, topic: 'platform-events', raw: text, external_id: null, owner: { account_id: 'a' } },
    ]);
  });

  test.each([
    ['chat.item.spell_5.json', 'FieryDragon', null],
    ['chat.item.custom_spell_5009.json', 'MySpell', { amount_minor: 600, currency: 'ELIXIR', display: 'MySpell ×3' }],
  ])('%s is an event, and a message with its amount', (name, text, paid) => {
    const [event, message] = recordsOf(read(fixture('trovo', name).toString()));
    expect(event).toMatchObject({ type: 'trovo:spell', topic: 'platform-events' });
    expect(readChatRecord(message!)).toMatchObject({
      message_type: 'spell',
      text,
      paid: paid && { kind: 'spell', ...paid },
    });
  });

  test.each(['{"gift":"x","gift_value":1.5,"value_type":"Mana"}', '{"gift_value":9}', '{', '[]', '{"gift_value":{}}'])(
    'the content %s has no amount',
    (content) => {
      const [, message] = recordsOf(read(JSON.stringify({ type: 5, content, sender_id: 1 })));
      expect(readChatRecord(message!)).toMatchObject({ text: content, paid: null });
    },
  );

  test('a message has its emotes, roles and picture, and is known by its id', () => {
    const text = JSON.stringify({
      type: 0,
      content: 'Test :firedragon! 12:30:45 :D @Ada https://example.com/a?b=c.',
      nick_name: 'Éxample',
      user_name: 'exampleuser',
      sender_id: 107380000,
      avatar: 'aaaa.png?ext=png&t=0',
      roles: ['streamer', 'mod'],
      medals: ['creator', 'sub_L1_T1'],
      message_id: '1752852369100763935_107354849_145407389_2887140591_5',
      send_time: 1752993852,
    });
    const [record] = recordsOf(read(text));
    expect(record).toMatchObject({
      external_id: 'trovo:1752852369100763935_107354849_145407389_2887140591_5',
      occurred_at: '2025-07-20T06:44:12.000Z',
      subject: 'trovo:107380000',
    });
    expect(readChatRecord(record!)).toMatchObject({
      author: { username: 'exampleuser', display_name: 'Éxample', avatar_url: expect.stringContaining('trovo.live') },
      roles: ['broadcaster', 'moderator', 'subscriber'],
      parts: [
        { type: 'text', text: 'Test ' },
        { type: 'emote', text: ':firedragon!', id: 'firedragon!', provider: 'trovo' },
        { type: 'text', text: ' 12:30:45 :D ' },
        { type: 'mention', text: '@Ada', username: 'Ada' },
        { type: 'text', text: ' ' },
        { type: 'link', url: 'https://example.com/a?b=c' },
        { type: 'text', text: '.' },
      ],
    });
  });

  test('joins, the unknown and what has no kind change nothing', () => {
    expect(read('{"type":5004}')).toMatchObject({ kind: 'skip' });
    expect(read('{"type":"0"}')).toMatchObject({ kind: 'park' });
  });
});

describe('kick', () => {
  const headers = (type: string) => ({ 'kick-event-type': type, 'kick-event-message-id': '01J' });
  const read = (body: Buffer | string, type: string, more: Record<string, string> = {}) =>
    chatOf(
      recordsOf(normaliseKick(toDelivery({ ...headers(type), ...more }, Buffer.from(body), NOW, { id_signed: true }))),
    );

  test('a message has its emotes, badges, roles and what it replies to', () => {
    expect(read(fixture('kick', 'chat.message.sent.json'), 'chat.message.sent')).toMatchObject({
      text: 'Hello HYPERCLAP HYPERCLAP KEKW',
      color: '#FF5733',
      author: { id: '987654321', username: 'sender_channel', display_name: 'sender_name' },
      badges: [{ kind: 'moderator' }, { kind: 'sub_gifter', id: '5' }, { kind: 'subscriber', id: '3' }],
      roles: ['moderator', 'subscriber'],
      reply: { message_id: 'unique_message_id_456', text: 'This is the parent message!', author: { id: '12345' } },
      parts: [
        { type: 'text', text: 'Hello ' },
        { type: 'emote', text: 'HYPERCLAP', id: '4148074', url: 'https://files.kick.com/emotes/4148074/fullsize' },
        { type: 'text', text: ' ' },
        { type: 'emote', text: 'HYPERCLAP' },
        { type: 'text', text: ' ' },
        { type: 'emote', text: 'KEKW', id: '37226' },
      ],
    });
  });

  test('positions count where no emote is written into the text, and what does not fit is passed over', () => {
    expect(read(fixture('kick', 'chat.message.sent.reply.json'), 'chat.message.sent')).toMatchObject({
      parts: [
        { type: 'emote', id: 'e1', text: 'hello' },
        { type: 'text', text: ' kick' },
      ],
    });
    const body = JSON.parse(fixture('kick', 'chat.message.sent.reply.json').toString());
    body.content = '🎉🎉 gg';
    body.emotes = [
      { emote_id: 'e1', positions: [{ s: 3, e: 4 }, { s: 2, e: 9 }, { s: -1, e: 0 }, { s: 4, e: 4 }, null] },
      null,
    ];
    expect(read(JSON.stringify(body), 'chat.message.sent')).toMatchObject({
      text: '🎉🎉 gg',
      parts: [
        { type: 'text', text: '🎉🎉 ' },
        { type: 'emote', text: 'gg' },
      ],
    });
  });

  test('without identity it has no badges, and the broadcaster is told by the id', () => {
    expect(read(fixture('kick', 'chat.message.sent.captured_minimal.json'), 'chat.message.sent')).toMatchObject({
      badges: [],
      color: null,
      roles: ['broadcaster'],
      text: 'Test message with emote emojiAstonished',
    });
  });

  test('a ban with an end is a timeout', () => {
    const body = fixture('kick', 'moderation.banned.json');
    expect(read(body, 'moderation.banned')).toMatchObject({
      action: 'timeout',
      duration_secs: 121,
      reason: 'banned reason',
      target: { id: '135790135' },
      moderator: { id: '987654321' },
    });
    const in_seconds = body.toString().replace('"2025-01-14T16:10:06Z"', '1736871006');
    expect(read(in_seconds, 'moderation.banned')).toMatchObject({ action: 'timeout', duration_secs: 121 });
  });

  test.each([
    'null',
    '""',
    '" "',
    '0',
    '"0"',
    '"0001-01-01T00:00:00Z"',
    '"0001-01-01T00:00:00.000000000Z"',
    '"1970-01-01T00:00:00Z"',
    '"2025-01-14T16:08:00Z"',
  ])('a ban with the end %s is permanent', (end) => {
    const body = fixture('kick', 'moderation.banned.json').toString().replace('"2025-01-14T16:10:06Z"', end);
    expect(read(body, 'moderation.banned')).toMatchObject({ action: 'ban', duration_secs: null, ends_at: null });
  });

  test.each(['null', '""', '0', '"0001-01-01T00:00:00Z"'])(
    'a ban without its time (%s) has that of its message',
    (at) => {
      const body = fixture('kick', 'moderation.banned.json').toString().replace('"2025-01-14T16:08:05Z"', at);
      const sent = (time: string) => read(body, 'moderation.banned', { 'kick-event-message-timestamp': time });
      const ends_at = '2025-01-14T16:10:06.000Z';
      expect(sent('2025-01-14T16:00:06Z')).toMatchObject({ action: 'timeout', duration_secs: 600, ends_at });
      // The message may be late, so that its time does not make the end a wrong one.
      expect(sent('2025-01-14T16:20:06Z')).toMatchObject({ action: 'timeout', duration_secs: null, ends_at });
    },
  );
});

test('whatever a vendor sends, its normaliser answers, and what it keeps can be read', () => {
  const frames = fc.oneof(
    fc.json(),
    fc.string(),
    fc
      .tuple(fc.constantFrom('youtube', 'trovo'), fc.jsonValue(), fc.string({ unit: 'binary' }), fc.double())
      .map(([, value, text, number]) =>
        JSON.stringify({
          id: text,
          type: 0,
          content: text,
          sender_id: value,
          send_time: number,
          roles: value,
          medals: [value, text],
          snippet: { type: 'superChatEvent', superChatDetails: { amountMicros: value, currency: text, tier: value } },
          authorDetails: { channelId: text, displayName: value },
        }),
      ),
  );
  fc.assert(
    fc.property(frames, (text) => {
      const received = { text, received_at: NOW };
      for (const outcome of [
        normaliseYoutubeChat(received, connection),
        normaliseTrovoChat(received, connection),
        normaliseKick(toDelivery(headersOfChat, Buffer.from(text), NOW)),
      ])
        for (const record of recordsOf(outcome)) if (record.topic === 'chat-events') readChatRecord(record);
    }),
    { numRuns: 1000, examples: [[UNCONVERTIBLE]] },
  );
});
/** Objects that are no numbers, nor texts, and throw where they are made one. */
const UNCONVERTIBLE = JSON.stringify({
  id: 'm',
  snippet: {
    type: 'superChatEvent',
    superChatDetails: { amountMicros: { toString: '' }, currency: 'USD', tier: { toString: '', valueOf: '' } },
  },
  authorDetails: { channelId: 'UC', displayName: { toString: '' } },
});
const headersOfChat = { 'kick-event-type': 'chat.message.sent' };

const linksIn = (text: string) => textParts(text).flatMap((part) => (part.type === 'link' ? [part.url] : []));

test.each([
  ['see https://wiki.example/Java_(island) now', 'https://wiki.example/Java_(island)'],
  ["see https://wiki.example/Ohm's_law now", "https://wiki.example/Ohm's_law"],
  ['(see https://wiki.example/a).', 'https://wiki.example/a'],
  ['https://wiki.example/[x]', 'https://wiki.example/[x]'],
  ['go to www.example.net now', 'https://www.example.net'],
  ['(WWW.example.net/a), yes', 'https://WWW.example.net/a'],
  ['\u{1f389}www.example.net', 'https://www.example.net'],
  ['見てhttps://a.example/b', 'https://a.example/b'],
  ['https://bücher.example/ä', 'https://bücher.example/ä'],
  ['http://a.example:8080/?q=a%20b&c=d#top!', 'http://a.example:8080/?q=a%20b&c=d#top'],
  ['https://ada:secret@a.example/b', 'https://ada:secret@a.example/b'],
  ['"https://a.example/b", he said', 'https://a.example/b'],
  ['https://a.example/b…', 'https://a.example/b'],
])('the link of %s', (text, url) => {
  expect(linksIn(text)).toEqual([url]);
});

test.each([
  'hmmwww...yes really',
  'ewww.nasty',
  'www...yes',
  'me@www.example.net',
  'me@example.net',
  'xhttps://a.example',
])('no link in %s', (text) => {
  expect(textParts(text)).toEqual([{ type: 'text', text }]);
});

test.each(['example.net', 'a.www.example.net', 'ftp://a.example', '//a.example', 'mailto:me@a.example'])(
  'no link without http or www: %s',
  (text) => {
    expect(linksIn(text)).toEqual([]);
  },
);

test('the parts of a text, joined, are the text, and each address opens', () => {
  const piece = fc.oneof(
    fc.string(),
    fc.constantFrom(' ', '@ada', 'https://a.example/b).', 'www.', 'http://', '@', '.', '(', "'", 'a.b', '\u{1f389}'),
    fc.string({ unit: 'binary' }),
  );
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      expect(linksIn(pieces.join('')).filter((url) => !URL.canParse(url))).toEqual([]);
      expect(textOfParts(textParts(pieces.join('')))).toBe(pieces.join(''));
    }),
  );
});

test('objects of a stream come whole, however it is cut, and a long one is refused', () => {
  const value = fc.array(fc.record({ id: fc.string(), nested: fc.jsonValue() }), { maxLength: 8 });
  fc.assert(
    fc.property(
      value,
      fc.integer({ min: 1, max: 7 }),
      fc.constantFrom(',\n', '\r\n', '\n\ndata: '),
      (objects, size, by) => {
        const texts = objects.map((object) => JSON.stringify(object));
        const stream = `[${texts.join(by)}]`;
        const reading = new JsonObjects(10_000);
        const read: string[] = [];
        for (let at = 0; at < stream.length; at += size) read.push(...reading.push(stream.slice(at, at + size)));
        expect(read).toEqual(texts);
        expect(objectsAt(`{"a":[[{}],{"items":[{}]}],"items":[${texts.join(',')}]}`, ['items'])).toEqual(texts);
      },
    ),
  );
  expect(() => new JsonObjects(10).push('{"aaaaaaaaaaaaaa":')).toThrow('more than 10 characters');
});
