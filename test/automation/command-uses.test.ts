import { randomUUID } from 'node:crypto';
import type { Queryable } from '../../engines/postgres/port';
import { NotSent } from '../../kernel/job';
import { answerDiscordCommand } from '../../reactors/automation/discord-commands';
import { postDiscord } from '../../reactors/connections/discord-posts';
import { beforeCall } from '../../services/automation/called';
import { uncountedOf } from '../../services/automation/command-counts';
import { deleteUsesOf, sweepCommandUses, takeUses } from '../../services/automation/command-uses';
import { startDue } from '../../services/automation/schedules';
import { type TestDatabase, testDatabase } from '../support/database';

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase();
});
afterAll(() => t?.drop());

const use = (cooldown_user = 0) => ({
  ...{ account_id: randomUUID(), command_id: randomUUID(), person: 'p', at_ms: 1_000 },
  ...{ cooldown_global: 0, cooldown_user },
});
const take = (...uses: ReturnType<typeof use>[]) => t.db.transaction((tx) => takeUses(tx, uses));

test('a use of a command whose counts are deleted meanwhile is refused, the others count', async () => {
  const [deleted, other] = [use(60), use()];
  expect(await take(deleted, other)).toEqual([1, 1]);
  /** Deletes the counts after the first statement of a use, as the end of the command does. */
  const deleting = (tx: Queryable): Queryable => ({
    async query(text, values, name) {
      if (name === 'bot-command-uses')
        await t.db.query('delete from bot_command_uses where command_id = $1', [deleted.command_id]);
      return tx.query(text, values, name);
    },
  });
  expect(await t.db.transaction((tx) => takeUses(deleting(tx), [deleted, other]))).toEqual([null, 2]);
});

test('counts of deleted commands are swept, and uses end with their command and account', async () => {
  const [orphan, kept, other] = [use(60), use(60), use(60)];
  await take(orphan, kept, other);
  await t.db.query(
    `insert into bot_commands (id, account_id, name, name_key, response_type, platforms, min_role, cooldown_global,
       cooldown_user, discord_form, enabled, created_at, updated_at)
     select id::uuid, null, id, id, 'text', '{}', 'everyone', 0, 0, 'both', true, now(), now()
     from unnest($1::text[]) id`,
    [[kept.command_id, other.command_id]],
  );
  // Their cooldowns of 1970 are over.
  expect(await sweepCommandUses(t.db)).toBeGreaterThanOrEqual(4);
  const left = () => t.db.query('select command_id from bot_command_uses order by 1');
  expect(await left()).toEqual([kept, other].map(({ command_id }) => ({ command_id })).sort(byId));
  for (const statement of deleteUsesOf('command_id')) await t.db.query(statement, [kept.command_id]);
  expect(await left()).toEqual([{ command_id: other.command_id }]);
  for (const statement of deleteUsesOf('account_id')) await t.db.query(statement, [other.account_id]);
  expect(await left()).toEqual([]);
});
test('an answer and a post in Discord are tried again when the database failed before the call', async () => {
  const query = () => Promise.reject(Object.assign(new Error('lost'), { code: '08006' }));
  const attempt = { key: 'k', number: 1, signal: new AbortController().signal };
  const used = { account_id: randomUUID(), command_id: randomUUID(), count: 1, feature: 'event_feed' };
  for (const one of [answerDiscordCommand, postDiscord])
    await expect(one.run(used as never, attempt, { db: { query } } as never)).rejects.toBeInstanceOf(NotSent);
});

const byId = (one: { command_id: string }, other: { command_id: string }) =>
  one.command_id < other.command_id ? -1 : 1;

test('cooldowns that are over are swept in bounded statements, others stay', async () => {
  await t.db.query(
    `insert into bot_command_user_uses (account_id, command_id, person, used_at, expires_at)
     select gen_random_uuid(), gen_random_uuid(), 'p' || n, now(), now() + (n - 10002) * interval '1 hour'
     from generate_series(1, 10003) n`,
  );
  const counts: number[] = [];
  const db: Pick<Queryable, 'query'> = {
    async query(text) {
      const rows = await t.db.query(text);
      counts.push(rows.length);
      return rows as never;
    },
  };
  expect([await sweepCommandUses(db), Math.max(...counts)]).toEqual([10_002, 5_000]);
  expect(await t.db.query('select person from bot_command_user_uses')).toEqual([{ person: 'p10003' }]);
});

test('all due schedules are started in one call', async () => {
  await t.db.query(
    `insert into account_schedules (owner, account_id, job, interval_seconds, next_due_at)
     select 'owner-' || n, gen_random_uuid(), 'job', 60, now() - interval '1 second' from generate_series(1, 1100) n`,
  );
  const keys = new Set<string>();
  const started = await startDue(t.db, async (_tx, jobs) => jobs.forEach(({ key }) => keys.add(key)));
  expect([started, keys.size]).toEqual([1_100, 1_100]);
});

test('an engine that is unavailable before a call is a reason to try again, a mistake is none', async () => {
  const failing = (error: Error) => beforeCall(() => Promise.reject(error));
  const lost = Object.assign(new Error('lost'), { code: '08006' });
  await expect(failing(lost)).rejects.toBeInstanceOf(NotSent);
  await expect(failing(new TypeError('no'))).rejects.toBeInstanceOf(TypeError);
});

test('commands of an account are found by an index, not among those of all accounts', async () => {
  const planOf = async (account_id: string | null): Promise<string> => {
    let plan: object[] = [];
    await t.db.transaction(async (tx) => {
      await tx.query('set local enable_seqscan = off');
      const explaining: Queryable = {
        async query(text, values) {
          plan = await tx.query(`explain ${text}`, values);
          return [];
        },
      };
      await uncountedOf(explaining, account_id, new Set());
    });
    return JSON.stringify(plan);
  };
  for (const account_id of [randomUUID(), null]) expect(await planOf(account_id)).toContain('Index Cond');
});
