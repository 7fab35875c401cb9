import {
  chatPerson,
  chatRecordText,
  chatRecordType,
  minorOfMicros,
  personsOf,
  readChatRecord,
  type ChatDraft,
} from '../../domain/chat/chat-messages';

const said: ChatDraft = {
  kind: 'message',
  platform: 'kick',
  channel_id: '99',
  shared_chat: null,
  message_id: 'm-1',
  live_chat_id: null,
  author: chatPerson('7', 'viewer'),
  color: '#FF0000',
  badges: [{ kind: 'moderator', id: null, info: null, image_url: null }],
  roles: ['moderator'],
  message_type: 'text',
  text: 'hi @Alice',
  parts: [
    { type: 'text', text: 'hi ' },
    { type: 'mention', text: '@Alice', user_id: '8', username: 'alice' },
  ],
  action: false,
  reply: { message_id: 'm-0', text: 'earlier', author: chatPerson('9', 'bob'), thread_message_id: null },
  paid: null,
  reward_id: null,
};

describe('a chat record', () => {
  test('keeps the vendor’s payload digit for digit, and is read as it was written', () => {
    const raw = chatRecordText(said, '{"message_id":820982911946154508}');
    expect(raw).toContain('"raw":{"message_id":820982911946154508}');
    expect(readChatRecord({ raw })).toMatchObject({ ...said, version: 1 });
    expect(chatRecordType(said)).toBe('kick:chat');
  });

  test('names everybody who is in it once, the author first', () => {
    expect(personsOf(said)).toEqual(['7', '9', '8']);
  });

  test.each([
    ['a payload of a build before', '{"message_id":"m-1"}'],
    ['an erased one', '"[erased]"'],
  ])('of version 1 is not: %s', (_name, raw) => {
    expect(readChatRecord({ raw })).toBeNull();
  });

  test.each([
    ['{"version":2,"kind":"message"}', 'a chat record of version 2 is for a newer build'],
    ['{"version":1,"kind":"song"}', 'kind: '],
    ['{"version":1,"kind":"moderation","platform":"twitch"}', 'channel_id: '],
    ['{', 'no JSON'],
  ])('%s is refused: %s', (raw, message) => {
    expect(() => readChatRecord({ raw })).toThrow(message);
  });

  test.each([
    ['5000000', 'USD', 500],
    [2_990_000, 'EUR', 299],
    ['500000000', 'JPY', 500],
    ['1234000', 'KWD', 1234],
    // ISO 4217 has two digits for these, the runtime's own table none.
    ['500000000', 'RSD', 50_000],
    ['1000000', 'huf', 100],
    ['7000000', 'ISK', 7],
    ['1500000', 'IQD', 1500],
    ['1000000', '', 100],
  ])('%s millionths of %s are %d minor units', (micros, currency, minor) => {
    expect(minorOfMicros(micros, currency)).toBe(minor);
  });
});
