import { randomUUID } from 'node:crypto';
import { NotSent } from '../../kernel/job';
import { lookUpFollower } from '../../reactors/automation/bot-commands';
import { knownFollowers } from '../../services/automation/followers';
import { type TestDatabase, testDatabase } from '../support/database';

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase();
});
afterAll(() => t?.drop());

test('a line waits for a look-up of its author by another job, and for no failed one', async () => {
  const author = { account_id: randomUUID(), platform: 'twitch', platform_user_id: '42' } as const;
  const of = [author.account_id, randomUUID()];
  await t.db.query(
    `insert into platform_users (account_id, person_key, platform, platform_user_id, roles, first_seen_at, last_seen_at,
       message_count, own_messages) values ($1, $2, 'twitch', '42', '{}', now(), now(), 1, 1)`,
    of,
  );
  await t.db.query('insert into platform_user_details (account_id, person_key, tried_at) values ($1, $2, now())', of);
  const used = {
    ...{ ...author, command_id: randomUUID(), cause_id: randomUUID(), channel_id: '1', reply_to: null },
    ...{ live_chat_id: null, person: 'p', at_ms: Date.now(), user: 'Ada', args: '' },
  };
  const attempt = { key: 'k', number: 1, signal: new AbortController().signal };
  // The look-up is not due.
  const tools = { db: t.db, chats: { enrich: () => Promise.resolve() } } as never;
  await expect(lookUpFollower.run(used, attempt, tools)).rejects.toThrow(NotSent);
  await t.db.query(`update platform_user_details set tried_at = now() - interval '1 minute'`);
  expect(await lookUpFollower.run(used, attempt, tools)).toBeUndefined();
});

test("Twitch's answer decides a use once, holds for 24 hours, and a stored follow overrides it", async () => {
  const author = { account_id: randomUUID(), platform: 'twitch', platform_user_id: '43' } as const;
  const [person_key, command_id] = [randomUUID(), randomUUID()];
  const { db } = t;
  await db.query(
    `insert into platform_users (account_id, person_key, platform, platform_user_id, roles, first_seen_at, last_seen_at,
       message_count, own_messages) values ($1, $2, 'twitch', '43', '{}', now(), now(), 1, 1)`,
    [author.account_id, person_key],
  );
  await db.query(
    `insert into bot_commands (id, account_id, name, name_key, response_type, response, platforms, min_role,
       cooldown_global, cooldown_user, discord_form, enabled, created_at, updated_at)
     values ($1, $2, 'f', 'f', 'text', 'Hi', '{twitch}', 'follower', 0, 60, 'both', true, now(), now())`,
    [command_id, author.account_id],
  );
  const used = {
    ...{ ...author, command_id, cause_id: randomUUID(), channel_id: '1', reply_to: null },
    ...{ live_chat_id: null, person: 'p', at_ms: Date.now(), user: 'Ada', args: '' },
  };
  const attempt = { key: 'k', number: 1, signal: new AbortController().signal };
  /** Looks the author up at a platform with this answer; returns the counts of the enqueued answers. */
  const lookUp = async (follows: boolean) => {
    const enrich = () =>
      db.query(
        `insert into platform_user_details (account_id, person_key, tried_at, enriched_at, is_follower)
         values ($1, $2, now(), now(), $3)
         on conflict (account_id, person_key) do update set enriched_at = now(), is_follower = excluded.is_follower`,
        [author.account_id, person_key, follows],
      );
    const effect = await lookUpFollower.run(used, attempt, { db, chats: { enrich } } as never);
    const counts: number[] = [];
    const enqueue = async (_job: unknown, ...jobs: readonly { payload: unknown }[]) =>
      jobs.forEach(({ payload }) => counts.push((payload as { count: number }).count));
    if (effect) await db.transaction((tx) => effect(tx, { enqueue } as never));
    return counts;
  };
  const known = { ...author, person_key };
  const isKnown = async () => (await knownFollowers(db, [known]))(known);
  expect(await isKnown()).toBeUndefined();
  expect([await lookUp(false), await isKnown()]).toEqual([[], false]);
  expect([await lookUp(true), await isKnown()]).toEqual([[1], true]);
  // The person's cooldown began with the answer.
  expect(await lookUp(true)).toEqual([]);
  await db.query(`update platform_user_details set enriched_at = now() - interval '25 hours', is_follower = false`);
  expect(await isKnown()).toBeUndefined();
  expect(await lookUp(false)).toEqual([]);
  await db.query(
    `insert into platform_event_logs (id, account_id, type, platform, user_id, raw, created_at)
     values (gen_random_uuid(), $1, 'twitch:follower', 'twitch', '43', '{}', now())`,
    [author.account_id],
  );
  expect(await isKnown()).toBe(true);
});

test('Twitch and Trovo are asked about an author without a stored follow, the others are not', async () => {
  const platforms = ['twitch', 'youtube', 'kick', 'trovo'];
  const authors = platforms.map((platform) => ({
    ...{ account_id: randomUUID(), platform, platform_user_id: '44', person_key: randomUUID() },
  }));
  expect(authors.map(await knownFollowers(t.db, authors))).toEqual([undefined, false, false, undefined]);
});
