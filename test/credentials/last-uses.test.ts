import { v4 } from 'uuid';
import { sweepLastUses } from '../../access/authentication/last-uses';
import { testDatabase, type TestDatabase } from '../support/database';

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase();
});
afterAll(() => t.drop());

test('the last use of a key goes a day after it when the key is gone', async () => {
  const [api, service, system, gone, recent] = [v4(), v4(), v4(), v4(), v4()];
  await t.db.query(
    `insert into api_keys (id, account_id, user_id, key_hash, key_prefix, label, permissions, created_at)
     values ($1, $1, $1, 'a', 'a', 'a', '{}', now())`,
    [api],
  );
  await t.db.query(
    `insert into service_keys (id, account_id, key_hash, key_prefix, label, permissions, created_at, updated_at)
     values ($1, $1, 'b', 'b', 'b', '{}', now(), now())`,
    [service],
  );
  await t.db.query(
    `insert into system_keys (id, key_hash, key_prefix, label, permissions, created_at)
     values ($1, 'c', 'c', 'c', '{}', now())`,
    [system],
  );
  await t.db.query(
    `insert into credential_uses (credential_id, last_used_at)
     select id, now() - interval '2 days' from unnest($1::text[]) id union all select $2, now()`,
    [[api, service, system, gone], recent],
  );
  expect(await sweepLastUses(t.db)).toBe(1);
  const left = await t.db.query<{ id: string }>('select credential_id as id from credential_uses');
  expect(new Set(left.map(({ id }) => id))).toEqual(new Set([api, service, system, recent]));
  expect(await sweepLastUses(t.db)).toBe(0);
});
