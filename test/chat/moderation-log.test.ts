import { randomUUID } from 'node:crypto';
import { type ChatDraft, chatPerson } from '../../domain/chat/chat-messages';
import type { LoggedRecord } from '../../engines/records/port';
import { ban, messageDelete, moderate, unban } from '../../ingest/twitch/moderation';
import { chatLive } from '../../projections/chat/chat';
import { chatMessages } from '../../read-api/chat/chat-messages';
import { chatModerationLog } from '../../read-api/chat/moderation-log';
import { act, chatRecord, message } from '../support/chat-records';
import { type TestDatabase, testDatabase } from '../support/database';

let t: TestDatabase;
let account_id: string;
beforeAll(async () => {
  t = await testDatabase();
});
beforeEach(() => {
  account_id = randomUUID();
});
afterAll(() => t?.drop());

const T0 = Date.parse('2026-11-01T12:00:00Z');
const at = (second: number) => new Date(T0 + second * 1000).toISOString();
const said = (draft: ChatDraft, second: number) => chatRecord(draft, { account_id, at: at(second) });
const apply = (records: readonly LoggedRecord[]) =>
  t.db.transaction((tx) => chatLive.apply(records, tx, { rebuilding: false, again: false }));
const types = async (...records: LoggedRecord[]) => (await apply(records)).map(({ event_type }) => event_type);

const log = (input: object = {}) => read(chatModerationLog, input);

async function read({ run: of }: { run: unknown }, input: object): Promise<{ items: Record<string, unknown>[] }> {
  const page = { limit: 25, from: null, max_bytes: 1 << 22 };
  const request = { input, caller: { account_id }, context: {}, page, refuse: (name: string) => new Error(name) };
  const run = of as (...of: unknown[]) => Promise<{ items: Record<string, unknown>[] }>;
  return run(request, { db: t.db });
}

describe('the moderation log', () => {
  test('what the account and its platform both tell of one act is one entry and one message', async () => {
    const ours = said(act('ban', '7', { moderator: null, reason: 'spam' }), 10);
    const echo = said(act('ban', '7', { moderator: chatPerson('1', 'mod') }), 11);
    const another = said(act('ban', '7'), 100);
    const types = async (records: LoggedRecord[]) => (await apply(records)).map(({ event_type }) => event_type);
    expect(await types([ours])).toEqual(['chat:clear_user', 'chat:moderation_log']);
    expect(await types([echo])).toEqual([]);
    expect(await types([another])).toEqual(['chat:clear_user', 'chat:moderation_log']);
    expect((await log()).items).toMatchObject([
      { id: another.id },
      { id: ours.id, reason: 'spam', moderator_name: 'mod', target_username: 'login_7' },
    ]);
    expect((await log({ user_id: '8' })).items).toEqual([]);
    expect((await log({ action: 'ban', to: at(50) })).items).toHaveLength(1);
  });

  test('reports within a minute are one act, unless their ends differ or an opposite act lies between', async () => {
    const types = async (...records: LoggedRecord[]) => (await apply(records)).map(({ event_type }) => event_type);
    const both = ['chat:clear_user', 'chat:moderation_log'];
    const timeout = (seconds: number, ends: number) =>
      said(act('timeout', '7', { duration_secs: ends - seconds, ends_at: at(ends) }), seconds);
    expect(await types(timeout(0, 600))).toEqual(both);
    expect(await types(timeout(59, 605))).toEqual([]);
    expect(await types(timeout(59, 606))).toEqual(both);
    expect(await types(said(act('untimeout', '7'), 70))).toEqual(['chat:moderation_log']);
    expect(await types(said(act('unban', '7', { moderator: null }), 71))).toEqual([]);
    expect(await types(timeout(100, 606), timeout(101, 606))).toEqual(both);
    expect(await types(said(act('ban', '8'), 10), said(act('unban', '8'), 11), said(act('ban', '8'), 12))).toEqual([
      ...both,
      'chat:moderation_log',
      ...both,
    ]);
    const { items } = await log({ user_id: '8' });
    expect(items.map(({ action }) => action)).toEqual(['ban', 'unban', 'ban']);
  });

  test('acts in two channels are two entries', async () => {
    expect(await types(said(act('ban', '7'), 0), said(act('ban', '7', { channel_id: '901' }), 1))).toHaveLength(4);
    expect((await log()).items).toHaveLength(2);
  });

  test('acts in two rooms of a shared chat are two entries, and opposite acts end one another there', async () => {
    const inRoom = (room: string, action: string, second: number) => {
      const shared_chat = { channel: chatPerson(room, `room_${room}`), message_id: null, badges: [] };
      return said(act(`shared_chat_${action}`, '7', { shared_chat }), second);
    };
    await types(inRoom('501', 'ban', 0), inRoom('502', 'ban', 1), inRoom('501', 'ban', 2));
    await types(inRoom('501', 'unban', 10), inRoom('502', 'ban', 11), inRoom('501', 'ban', 12));
    const { items } = await log();
    expect(items.map(({ action, source_channel_id }) => [action, source_channel_id])).toEqual([
      ['shared_chat_ban', '501'],
      ['shared_chat_unban', '501'],
      ['shared_chat_ban', '502'],
      ['shared_chat_ban', '501'],
    ]);
  });

  const us = { broadcaster_user_id: '900' };
  const mod = { moderator_user_id: '9', moderator_user_login: 'mod', moderator_user_name: 'Mod' };
  const user = { user_id: '7', user_login: 'u', user_name: 'U' };
  const target = { target_user_id: '7', target_user_login: 'u', target_user_name: 'U' };
  const of = (event: object) => ({ type: '', raw: '', timestamp: at(0), event: { ...us, ...event } }) as never;
  const moderated = (action: string, detail: object) =>
    moderate(of({ ...mod, action, [action]: { ...user, ...detail } }), '900', action);
  const lasting = { ...user, ...mod, reason: 'spam', banned_at: at(0) };
  const reports: Record<string, () => [ChatDraft, ChatDraft]> = {
    deletion: () => [
      messageDelete(of({ ...target, message_id: 'm-1' }), '900'),
      moderated('delete', { message_id: 'm-1', message_body: 'rude' }),
    ],
    ban: () => [
      ban(of({ ...lasting, is_permanent: true, ends_at: null }), '900'),
      moderated('ban', { reason: 'spam' }),
    ],
    timeout: () => [
      ban(of({ ...lasting, is_permanent: false, ends_at: at(600) }), '900'),
      moderated('timeout', { reason: 'spam', expires_at: at(602) }),
    ],
    unban: () => [unban(of({ ...user, ...mod }), '900'), moderated('unban', {})],
  };

  test.each(Object.keys(reports))('a %s under two types of Twitch is one entry, in either order', async (name) => {
    const push = { deletion: ['chat:delete'], ban: ['chat:clear_user'], timeout: ['chat:clear_user'] }[name] ?? [];
    for (const order of [reports[name]!(), reports[name]!().reverse()]) {
      account_id = randomUUID();
      const [first, second] = order.map((draft, n) => said(draft, n));
      expect(await types(first!)).toEqual([...push, 'chat:moderation_log']);
      expect(await types(second!)).toEqual([]);
      expect((await log()).items).toMatchObject([{ id: first!.id, moderator_id: '9', target_user_id: '7' }]);
      // The moderator is found, whichever report names them.
      expect((await log({ moderator_id: '9', user_id: '7' })).items).toHaveLength(1);
      account_id = randomUUID();
      expect(await types(...order.map((draft, n) => said(draft, n)))).toEqual([...push, 'chat:moderation_log']);
    }
  });

  test.each(['deletion', 'ban'])('messages have the moderator of a %s, whichever report names them', async (name) => {
    const [unnamed, named] = reports[name]!();
    for (const order of [
      [{ ...unnamed, moderator: null }, named],
      [named, { ...unnamed, moderator: null }],
    ]) {
      account_id = randomUUID();
      const [first, second] = order as [ChatDraft, ChatDraft];
      await apply([said(message('7', 'rude', { message_id: 'm-1' }), 0), said(first, 1), said(second, 2)]);
      expect((await read(chatMessages, {})).items).toMatchObject([{ deleted_at: at(1), deleted_by: 'mod' }]);
    }
  });
});
