import { randomUUID } from 'node:crypto';
import { NotSent } from '../../kernel/job';
import { lookUpFollower } from '../../reactors/automation/bot-commands';
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
