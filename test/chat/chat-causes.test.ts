import { randomUUID } from 'node:crypto';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { createSecretBox } from '../../privacy/secrets/box';
import { chatCallsOf } from '../../bin/vendors/chat';
import { EngineUnavailable } from '../../kernel/failures';
import type { ActedLine } from '../../domain/automation/modules/module-acts';
import { chatActStream } from '../../domain/chat/chat-acts';
import type { EffectTools, Enqueued } from '../../kernel/job';
import type { JobTools } from '../../app/job';
import { actOnLine, noteModuleAct } from '../../reactors/automation/module-acts';
import { causeOf } from '../../services/chat/causes';
import { moderateChat } from '../../services/chat/moderate-chat';
import { noteModeration } from '../../services/chat/moderation-notes';
import { announce, sendChat } from '../../services/chat/send-chat';
import { shoutOut } from '../../services/chat/shout-out';
import { writeLoginGrant } from '../../services/oauth/login-grants';
import { createHttpClients } from '../../vendors/http/client';
import type { HttpClients } from '../../vendors/http/port';
import { kickChat } from '../../vendors/kick/chat';
import { twitchChat } from '../../vendors/twitch/chat';
import type { TestDatabase } from '../support/database';
import { enginesOfEach } from '../support/each';
import type { Engines } from '../support/projections';
import { FakeChatCloud } from '../vendors/chat-cloud';

let t: TestDatabase;
let on: Engines;
enginesOfEach((database, embedded) => ([t, on] = [database, embedded]));

/** Functions of bots, automations and extensions: each acts once for the key of its cause. */
describe('acts in the chat for a cause', () => {
  const [account_id, user_id] = [randomUUID(), randomUUID()];
  const platform = 'twitch' as const;
  let cloud: FakeChatCloud;
  let http: HttpClients;
  let services: Parameters<typeof sendChat>[0] & Parameters<typeof moderateChat>[0];
  beforeEach(async () => {
    cloud = await new FakeChatCloud().start();
    http = createHttpClients({ metrics: createPrometheusMetrics({}), allow_loopback: true });
    const secrets = createSecretBox(parseMasterKeys(`test:${Buffer.alloc(32, 7).toString('base64')}`));
    const urls = { api_url: cloud.base_url, id_url: cloud.base_url };
    const chat = new Map([
      ['twitch', twitchChat(http, { ...urls, app: null })],
      ['kick', kickChat(http, urls)],
    ]);
    const awaitShown = async () => undefined;
    const { db } = t;
    services = { db, events: on.events, records: on.records, secrets, chat, awaitShown, logins: new Map() } as never;

    const login_connection_id = randomUUID();
    for (const slug of ['twitch', 'kick'])
      await db.query(
        `insert into channel_connections (id, account_id, platform, platform_channel_id, connected_at)
         values ($1, $2, $3, '4711', now())`,
        [randomUUID(), account_id, slug],
      );
    await db.query(
      `insert into login_connections (id, user_id, provider, connected_at) values ($1, $2, 'twitch', now())`,
      [login_connection_id, user_id],
    );
    const { access_token } = cloud.tokens.give('900');
    const names = { username: 'mod', display_name: 'Mod', avatar_url: null, email: null };
    const said = { provider_id: '900', ...names, scopes: [], expires_at: null, client_id: 'lumio-app' };
    await writeLoginGrant({ db, secrets }, { login_connection_id, user_id, said, access_token });
  });
  afterEach(async () => {
    await http.close();
    await cloud.close();
  });

  const cause = (key: string) => causeOf(services, 'bot', key);
  const base = (key: string) => ({ account_id, user_id, platform, cause_id: cause(key).cause_id });
  const unknown = { sent: false, error_code: 'internal_error' };

  test('a message and an announcement are sent once', async () => {
    const message = { text: 'hello', reply_to: null, live_chat_id: null, for_source_only: false };
    const first = await sendChat(services, { ...base('a'), ...message });
    expect(first).toMatchObject({ sent: true });
    expect(await sendChat(services, { ...base('a'), ...message })).toEqual(first);
    expect(cloud.sent).toHaveLength(1);

    const announcement = { ...base('b'), text: 'news', color: 'green' as const };
    expect(await announce(services, announcement)).toEqual({ sent: true, message_id: null });
    expect(await announce(services, announcement)).toEqual({ sent: true, message_id: null });
    const query = { broadcaster_id: '4711', moderator_id: '900' };
    const route = 'POST /helix/chat/announcements';
    expect(cloud.acts).toEqual([{ route, owner: '900', query, body: { message: 'news', color: 'green' } }]);
    cloud.fail({ path: '/helix/chat/announcements', status: 'cut' });
    for (const _ of [1, 2]) expect(await announce(services, { ...announcement, ...base('c') })).toMatchObject(unknown);
    expect(cloud.acts).toHaveLength(1);
    await expect(announce(services, { ...announcement, platform: 'kick' })).rejects.toThrow('UNSUPPORTED');
  });

  test('a shout-out is made once, and its outcome stays', async () => {
    const request = { ...base('a'), target_channel_id: '42' };
    for (const _ of [1, 2]) expect(await shoutOut(services, request)).toEqual({ success: true });
    const query = { from_broadcaster_id: '4711', to_broadcaster_id: '42', moderator_id: '900' };
    expect(cloud.acts).toEqual([{ route: 'POST /helix/chat/shoutouts', owner: '900', query, body: {} }]);
    cloud.fail({ path: '/helix/chat/shoutouts', status: 429, body: { message: 'too soon' } });
    const limited = { ...request, ...base('d') };
    expect(await shoutOut(services, limited)).toMatchObject({ success: false, details: 'too soon', passing: true });
    expect(await shoutOut(services, limited)).toEqual({ success: true });
    cloud.acts.length = 1;
    cloud.fail({ path: '/helix/chat/shoutouts', status: 403, body: { message: 'not here' } });
    const refused = { ...request, ...base('b') };
    expect(await shoutOut(services, refused)).toMatchObject({ success: false, details: 'not here' });
    expect(await shoutOut(services, refused)).toMatchObject({ success: false, outcome_unknown: false });
    cloud.fail({ path: '/helix/chat/shoutouts', status: 'cut' });
    for (const _ of [1, 2])
      expect(await shoutOut(services, { ...request, ...base('c') })).toMatchObject({ outcome_unknown: true });
    expect(cloud.acts).toHaveLength(1);
    await expect(shoutOut(services, { ...request, ...base('e'), platform: 'kick' })).rejects.toThrow('UNSUPPORTED');
  });

  test('an act of a moderator is carried out, published and noted once', async () => {
    const ban = () => {
      const { cause_id: act_id, ...by } = cause('a');
      const whom = { platform_user_id: '7', message_id: null, duration_secs: null, reason: 'spam', live_chat_id: null };
      return moderateChat(services, by, { account_id, user_id, platform, act_id, action: 'BAN', ...whom });
    };
    for (const _ of [1, 2]) expect(await ban()).toEqual({ success: true });
    expect(cloud.acts).toHaveLength(1);
  });

  test('an act whose record could not be published is published later, without another call', async () => {
    const { cause_id: act_id, ...by } = cause('late');
    const whom = { platform_user_id: '7', message_id: null, duration_secs: 60, reason: 'spam', live_chat_id: null };
    const request = { account_id, user_id, platform, act_id, action: 'TIMEOUT' as const, ...whom };
    const unavailable = {
      ...services,
      records: { append: () => Promise.reject(new EngineUnavailable('the log', new Error('closed'))) },
    } as unknown as typeof services;
    await expect(moderateChat(unavailable, by, request)).rejects.toThrow('the log is away');
    await t.db.query(`update chat_sends set asked_at = asked_at - interval '20 seconds'`);
    expect(await moderateChat(unavailable, by, { ...request, once: true })).toEqual({ success: true, noted: false });
    const append = jest.spyOn(on.records, 'append');
    for (const _ of [1, 2]) expect(await noteModeration(services, by, request)).toBe(true);
    expect(cloud.acts).toHaveLength(1);
    expect(await on.events.read(chatActStream(act_id))).toHaveLength(1);
    expect(append).toHaveBeenCalledTimes(1);
    const [record] = append.mock.calls[0]![1];
    expect(Date.parse(record!.received_at) - Date.parse(record!.occurred_at)).toBeGreaterThanOrEqual(20_000);
  });

  test('a warning of a module whose record could not be published is published by a job of its own', async () => {
    const append = jest.spyOn(on.records, 'append');
    append.mockRejectedValueOnce(new EngineUnavailable('the log', new Error('closed')));
    const chats = { maxCharacters: () => 500, send: async () => ({ sent: true, message_id: 'w-1' }) };
    const tools = { db: t.db, records: on.records, chats } as unknown as JobTools;
    const line: ActedLine = {
      ...{ account_id, module_name: 'word_filter', platform, cause_id: randomUUID(), channel_id: '4711' },
      ...{ message_id: 'm-1', live_chat_id: null, action: 'warn', wanted: 'warn', timeout_seconds: 600 },
      ...{ person: 'hash', at_ms: Date.now(), platform_user_id: '7' },
    };
    const attempt = { key: line.cause_id, number: 1, signal: new AbortController().signal };
    const effect = await actOnLine.run(line, attempt, tools);
    const waiting: Enqueued<unknown>[] = [];
    const enqueue = async (_job: unknown, ...jobs: Enqueued<unknown>[]) => void waiting.push(...jobs);
    await t.db.transaction((tx) => effect!(tx, { enqueue } as EffectTools));
    expect(waiting).toEqual([{ key: line.cause_id, payload: line }]);
    expect(await noteModuleAct.run(line, attempt, tools)).toBeUndefined();
    expect(append.mock.calls.at(-1)![1]).toMatchObject([{ type: 'twitch:moderation' }]);
    await noteModuleAct.run({ ...line, platform_user_id: null }, attempt, tools);
    expect(append).toHaveBeenCalledTimes(2);
  });

  test('an act without an answer is made once by a job, and again by a person', async () => {
    const { cause_id: act_id, ...by } = cause('unanswered');
    const whom = { platform_user_id: '7', message_id: null, duration_secs: null, reason: null, live_chat_id: null };
    const request = { account_id, user_id, platform, act_id, action: 'BAN' as const, ...whom };
    cloud.fail({ path: '/helix/moderation/bans', status: 'cut' });
    for (const _ of [1, 2])
      expect(await moderateChat(services, by, { ...request, once: true })).toMatchObject({ outcome_unknown: true });
    expect(await noteModeration(services, by, request)).toBe(false);
    expect(await moderateChat(services, by, request)).toEqual({ success: true });
    expect(cloud.acts).toHaveLength(1);
  });

  test('a job speaks, shows another channel and moderates as a service of its own', async () => {
    const calls = chatCallsOf(
      { settings: {} as never, db: t.db, engines: { ...on, secrets: services.secrets } as never },
      services as never,
      new Map(),
    );
    const by = { account_id, user_id, platform };
    const announcement = { ...by, cause_id: randomUUID(), text: 'news', color: null };
    const shout = { ...by, cause_id: randomUUID(), target_channel_id: '42' };
    const act_id = randomUUID();
    const rest = { platform_user_id: '7', message_id: null, duration_secs: null, reason: 'spam', live_chat_id: null };
    const ban = { ...by, act_id, action: 'BAN' as const, ...rest };
    for (const _ of [1, 2]) {
      expect(await calls.announce(announcement)).toMatchObject({ sent: true });
      expect(await calls.shoutOut(shout)).toEqual({ success: true });
      expect(await calls.moderate('bot_module:word_filter', ban)).toEqual({ success: true });
    }
    expect(cloud.acts.map(({ route }) => route)).toEqual([
      'POST /helix/chat/announcements',
      'POST /helix/chat/shoutouts',
      'POST /helix/moderation/bans',
    ]);
    const [noted] = await on.events.read(chatActStream(act_id));
    expect(noted!.metadata).toMatchObject({ actor_kind: 'service', actor_id: 'bot_module:word_filter' });

    await t.db.query(
      `insert into platform_chat_messages
         (account_id, platform, place, id, created_at, message_id, message, is_first, is_paid, has_link, has_emote, is_late)
       values ($1, 'twitch', 1, $2, now(), 'm-1', 'bad', false, false, false, false, false)`,
      [account_id, randomUUID()],
    );
    const deletion = {
      ...ban,
      act_id: randomUUID(),
      action: 'DELETE' as const,
      platform_user_id: null,
      message_id: 'm-1',
    };
    cloud.fail({ path: '/helix/moderation/chat', status: 429, body: { message: 'too fast' } });
    const refusal = { success: false, details: 'too fast', passing: true };
    expect(await calls.moderate('automations', deletion)).toMatchObject(refusal);
    for (const _ of [1, 2]) expect(await calls.moderate('automations', deletion)).toEqual({ success: true });
    expect(cloud.acts).toHaveLength(4);
  });
});
