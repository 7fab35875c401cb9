import { randomUUID } from 'node:crypto';
import { sentHere } from '../../services/automation/account-bots';
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
  const [echo, later] = [1_000, 20_000].map((after) => ({ account_id, message_id: null, at_ms: asked_ms + after }));
  const stranger = { ...echo!, account_id: randomUUID() };
  const isSentHere = await sentHere(t.db, [echo!, later!, stranger]);
  expect([echo!, later!, stranger].map(isSentHere)).toEqual([true, false, false]);
});
