import { PostgresDatabase } from '../../engines/postgres/pool';
import { sharedServer, type SharedServer } from '../support/shared-server';

const MOST = 500;

/** Rows of one person, or of one account, as the read models keep them; `$1` is the account, `$2` the person. */
const ROWS = {
  '/v1/api-keys': `insert into api_keys (id, account_id, user_id, key_hash, key_prefix, label, permissions, created_at)
    select gen_random_uuid(), $1, $2, md5(n || gen_random_uuid()::text), 'lm_usr_ab', 'Bot', '{events:read}', now()
    from generate_series(1, $3::int) n returning id`,
  '/v1/service-keys': `insert into service_keys
      (id, account_id, created_by, key_hash, key_prefix, label, permissions, created_at, updated_at)
    select gen_random_uuid(), $1, $2, md5(n || gen_random_uuid()::text), 'lm_svc_ab', 'Bot', '{events:read}', now(), now()
    from generate_series(1, $3::int) n returning id`,
  '/v1/tokens': `with made as (
      insert into popout_tokens
        (id, account_id, user_id, created_by, token_hash, token_prefix, permissions, created_at)
      select gen_random_uuid(), $1, $2, $2, md5(n || gen_random_uuid()::text), 'lm_pop_ab', '{events:read}', now()
      from generate_series(1, $3::int) n returning id, account_id, user_id)
    insert into member_tokens (token_id, account_id, user_id) select id, account_id, user_id from made
    returning token_id`,
};

describe('keys and tokens', () => {
  let server: SharedServer;
  let db: PostgresDatabase;
  beforeAll(async () => {
    server = await sharedServer();
    db = new PostgresDatabase({ url: server.database_url, name: 'key-counts', size: 1 });
  });
  afterAll(() => db?.close());

  test.each(Object.keys(ROWS) as (keyof typeof ROWS)[])('%s: there are so many and no more', async (path) => {
    const { account_id, user_id, door } = await server.account();
    const other = await server.member(account_id, 'administrator');
    const make = (as?: string) =>
      door.rest('POST', path, { ...(as && { as }), body: { label: 'One more', permissions: ['events:read'] } });
    await db.query(ROWS[path], [account_id, user_id, MOST - 1]);
    expect((await make()).status).toBe(201);
    await db.query(ROWS[path], [account_id, user_id, 1]);
    expect(await make()).toMatchObject({
      status: 409,
      json: { error: 'CONFLICT', message: `There are ${MOST} already; delete some first` },
    });
    // What one member has is not in another's way; an account's own keys are everybody's.
    expect((await make(other.access_token)).status).toBe(path === '/v1/service-keys' ? 409 : 201);
  });

  test('a popout token that acts for another member counts for its maker alone', async () => {
    const { account_id, user_id, door } = await server.account();
    const maker = await server.member(account_id, 'administrator');
    const make = (by: typeof door, acts_for: string) =>
      by.rest('POST', '/v1/tokens', { body: { permissions: ['events:read'], user_id: acts_for } });
    await db.query(
      `with made as (
         insert into popout_tokens
           (id, account_id, user_id, created_by, token_hash, token_prefix, permissions, created_at)
         select gen_random_uuid(), $1, $2, $3, md5(gen_random_uuid()::text), 'lm_pop_ab', '{events:read}', now()
         from generate_series(1, $4::int) returning id)
       insert into member_tokens (token_id, account_id, user_id) select id, $1, unnest(array[$2, $3]::uuid[]) from made`,
      [account_id, user_id, maker.user_id, MOST - 1],
    );
    expect((await make(maker.door, user_id)).status).toBe(201);
    for (const acts_for of [user_id, maker.user_id])
      expect(await make(maker.door, acts_for)).toMatchObject({ status: 409, json: { error: 'CONFLICT' } });
    expect((await make(door, user_id)).status).toBe(201);
    expect((await make(door, maker.user_id)).status).toBe(201);
  });
});
