import { randomUUID } from 'node:crypto';
import type { Queryable } from '../../engines/postgres/port';
import { takeUses } from '../../services/automation/command-uses';
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
