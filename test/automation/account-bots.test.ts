import { randomUUID } from 'node:crypto';
import { placesWithBot, sentHere } from '../../services/automation/account-bots';
import { endSend, echoMark, keepSend } from '../../services/chat/sends';
import { nextMessage } from '../../services/automation/timed-messages';
import { type TestDatabase, testDatabase } from '../support/database';

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase();
});
afterAll(() => t?.drop());

test('a line that is read late is the echo of a send of its own time without an outcome', async () => {
  const account_id = randomUUID();
  const asked_ms = Date.now() - 25_000;
  await t.db.query(
    `insert into chat_sends (account_id, id, platform, speaker_id, asked_at, status, text_hash)
     values ($1, $2, 'kick', $2, to_timestamp($3::float8 / 1000), 'unknown', $4)`,
    [account_id, randomUUID(), asked_ms, 'hash'],
  );
  const [echo, later] = [1_000, 20_000].map((after) => ({
    ...{ account_id, platform: 'kick', message_id: null, at_ms: asked_ms + after, text: 'Hi' },
  }));
  const lines = [echo!, later!, { ...echo!, account_id: randomUUID() }, { ...echo!, platform: 'twitch' }];
  const isSentHere = await sentHere(t.db, lines);
  expect(lines.map(isSentHere)).toEqual([true, false, false, false]);
});

test('a line with the text of a send to which the platform gave no id is its echo', async () => {
  const [account_id, id] = [randomUUID(), randomUUID()];
  const of = { account_id, id, platform: 'trovo', speaker_id: id, channel_id: '1', speaker_hash: 's' } as const;
  await keepSend(t.db, { ...of, text_hash: 'hash', echo_mark: echoMark('!hug ada ') }, null);
  await endSend(t.db, of, 'sent');
  const said = (text: string, after_ms = 1_000) => ({
    ...{ account_id, platform: 'trovo', message_id: 'line', at_ms: Date.now() + after_ms, text },
  });
  const lines = [said('!hug ada'), said('!hug bob'), said('!hug ada', 20_000)];
  const isSentHere = await sentHere(t.db, lines);
  expect(lines.map(isSentHere)).toEqual([true, false, false]);
});

test('a bot that needs a new connection is no bot of a channel', async () => {
  const place = { account_id: randomUUID(), platform: 'kick' } as const;
  const of = [randomUUID(), place.account_id];
  await t.db.query(
    `insert into account_feature_overrides (account_id, flag, enabled, set_at) values ($1, 'feature:bots', true, now())`,
    [place.account_id],
  );
  await t.db.query(
    `insert into channel_connections (id, account_id, platform, platform_channel_id, connected_at)
     values ($1, $2, 'kick', '1', now())`,
    of,
  );
  await t.db.query(
    `insert into bot_connections (id, account_id, platform, platform_user_id, connected_at, since)
     values ($1, $2, 'kick', '2', now(), now())`,
    of,
  );
  const hasBot = async () => (await placesWithBot(t.db, [place]))(place);
  expect(await hasBot()).toBe(true);
  await t.db.query('update bot_connections set reconnect_required = true');
  expect(await hasBot()).toBe(false);
});

test('the echo of a timed message is no line of others, also where the platform names no id', async () => {
  const place = { account_id: randomUUID(), platform: 'trovo' } as const;
  const { account_id } = place;
  const [bot, viewer] = [randomUUID(), randomUUID()];
  const { db } = t;
  await db.query(
    `insert into bot_modules (account_id, module_name, enabled, config, exempt_roles)
     values ($1, 'timed_messages', true, '{"messages": ["Hi"], "min_chat_lines": 1}', '{}')`,
    [account_id],
  );
  await db.query(`insert into timed_messages values ($1, 'trovo', 1, now() - interval '5 minutes')`, [account_id]);
  await db.query(
    `insert into bot_connections (id, account_id, platform, platform_user_id, connected_at, since)
     values ($1, $2, 'trovo', 'bot', now(), now())`,
    [randomUUID(), account_id],
  );
  await db.query(
    `insert into chat_sends (account_id, id, platform, speaker_id, asked_at, status)
     values ($1, gen_random_uuid(), 'trovo', gen_random_uuid(), now() - interval '299 seconds', 'sent')`,
    [account_id],
  );
  const say = (person_key: string, platform_user_id: string, ago: number) =>
    db.query(
      `insert into platform_chat_messages (account_id, platform, place, id, created_at, person_key, message_id, message,
         content, is_first, is_paid, has_link, has_emote, is_late)
       select $1, 'trovo', (extract(epoch from at) * 1000000)::bigint, gen_random_uuid(), at, $2, 'm' || $3, 'Hi', $4,
         false, false, false, false, false
       from (select now() - $3::int * interval '1 second' as at) said`,
      [account_id, person_key, ago, JSON.stringify({ platform_user_id, channel_id: 'channel' })],
    );
  await say(bot, 'bot', 298);
  expect(await nextMessage(db, place)).toBeNull();
  await say(viewer, 'viewer', 297);
  expect(await nextMessage(db, place)).toBe('Hi');
});
