import { adminAccounts } from '../../views/operators/admin-accounts';
import { adminUsers } from '../../views/operators/admin-users';
import { botControlsOf } from '../../views/connections/bot-states';
import { discordGuildsOf } from '../../views/connections/discord-guilds';
import { PLATFORMS } from '../../domain/common/vendors';
import type { PersonalTexts } from '../../privacy/subject-keys/port';
import { type TestDatabase, testDatabase } from '../support/database';
import { uuid } from '../support/identity';

/** Words that meet whatever a search could read otherwise than as it stands. */
const WORDS = [
  'Ada',
  'ADA',
  'da',
  'Łódź',
  'łódź',
  'İzmir',
  'straße',
  'ΣΑΣ',
  '山田',
  '山',
  '😀',
  'a%b',
  'a_b',
  '\\',
  "'",
  ' ',
];
const PEOPLE = 400;

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase();
  const word = (n: number) => WORDS[n % WORDS.length]!;
  const people = Array.from({ length: PEOPLE }, (_one, n) => ({
    user_id: uuid(n + 1),
    account_id: uuid(1000 + n),
    display_name: `${word(n)}${word(n * 7 + (n >> 4))} ${n}${n % 150 === 7 ? ' 龍 qZ Żyx' : ''}`,
    email: n % 3 === 0 ? null : `${word(n * 5)}.${n}@example.com`,
    account: n % 4 === 0 ? `${word(n * 3)} & ${word(n)}` : null,
    created_at: new Date(Date.UTC(2026, 0, 1) + (n % 50) * 1000).toISOString(),
  }));
  await t.db.query(
    `with p as (select * from jsonb_to_recordset($1::jsonb) as p (user_id uuid, account_id uuid, display_name text,
         email text, account text, created_at timestamptz)),
       users as (insert into users (id, created_at) select user_id, created_at from p where user_id <> $2),
       profiles as (insert into profiles (user_id, display_name, email) select user_id, display_name, email from p)
     insert into accounts (id, name, owner_id, created_at) select account_id, account, user_id, created_at from p`,
    [JSON.stringify(people), uuid(PEOPLE)],
  );
  // Some accounts have a channel, some a bot, some both at one platform.
  await t.db.query(
    `with a as (select id, row_number() over (order by id) as n from accounts),
       channels as (
         insert into channel_connections (id, account_id, platform, platform_channel_id, connected_at)
         select gen_random_uuid(), a.id, p, n::text, now() from a, unnest(array['twitch', 'kick']) p
         where n % case p when 'twitch' then 2 else 3 end = 0)
     insert into bot_connections (id, account_id, platform, platform_user_id, connected_at, since)
     select gen_random_uuid(), a.id, p, 'guild ' || n, now() - make_interval(secs => n % 30), now()
     from a, unnest(array['twitch', 'discord']) p where n % 5 <> 0`,
  );
});
afterAll(() => t?.drop());

const SEARCHES = [
  ...WORDS,
  '',
  'a',
  'A',
  '@',
  '.',
  '1',
  'ada 1',
  'A & Ł',
  'xample.c',
  'EXAMPLE.COM',
  'no such person',
  '%',
  '__',
  // Held by few.
  '龍',
  'Qz',
  'zż',
  'żyx',
  'Z żY',
];

/** What a look at every row finds. */
async function everyRow(search: string) {
  const users = await t.db.query<{ id: string }>(
    `select u.id from users u left join profiles p on p.user_id = u.id
     where $1 = '' or position(lower($1) in lower(p.display_name)) > 0 or position(lower($1) in lower(p.email)) > 0
     order by u.created_at desc, u.id desc`,
    [search],
  );
  const accounts = await t.db.query<{ id: string }>(
    `select a.id from accounts a left join profiles p on p.user_id = a.owner_id
     where $1 = '' or position(lower($1) in lower(a.name)) > 0 or position(lower($1) in lower(p.display_name)) > 0
       or position(lower($1) in lower(p.email)) > 0
     order by a.created_at desc, a.id desc`,
    [search],
  );
  const ids = (rows: { id: string }[]) => rows.map(({ id }) => id);
  return { users: ids(users), accounts: ids(accounts) };
}

test.each(SEARCHES)('operators find by %j whom a look at every row finds, page by page', async (search) => {
  const wanted = await everyRow(search);
  const ids = (items: readonly { id: string }[]) => items.map(({ id }) => id);
  for (const rows of [
    { limit: 25, offset: 0 },
    { limit: 500, offset: 3 },
  ]) {
    const { limit, offset } = rows;
    const users = await adminUsers(t.db, rows, { search });
    expect([users.total, ids(users.items)]).toEqual([wanted.users.length, wanted.users.slice(offset, offset + limit)]);
    const accounts = await adminAccounts(t.db, rows, { search });
    expect([accounts.total, ids(accounts.items)]).toEqual([
      wanted.accounts.length,
      wanted.accounts.slice(offset, offset + limit),
    ]);
  }
});

/** The same of what accounts have. */
async function everyRowOfAccounts(search: string) {
  const named = `(
    $1 = '' or position(lower($1) in lower(a.name)) > 0 or position(lower($1) in lower(p.display_name)) > 0`;
  const joined = 'join accounts a on a.id = k.account_id left join profiles p on p.user_id = a.owner_id';
  const bots = await t.db.query(
    `select k.account_id, k.platform from (
       select account_id, platform from channel_connections union select account_id, platform from bot_connections) k
     ${joined} where k.platform = any($2) and ${named})
     order by a.created_at desc, k.account_id, k.platform`,
    [search, PLATFORMS],
  );
  const guilds = await t.db.query(
    `select k.platform_user_id as guild_id from bot_connections k ${joined}
     where k.platform = 'discord' and ${named} or k.platform_user_id = $1)
     order by k.connected_at desc, k.platform_user_id`,
    [search],
  );
  return { bots, guilds };
}

/** What vendors call the servers is not asked here. */
const texts = { openAll: async () => [] } as unknown as PersonalTexts;
test.each([...SEARCHES, 'guild 7', 'guild'])(
  'bots and servers are found by %j as a look at every row does',
  async (search) => {
    const wanted = await everyRowOfAccounts(search);
    for (const { limit, offset } of [
      { limit: 25, offset: 0 },
      { limit: 2000, offset: 3 },
    ]) {
      const bots = await botControlsOf(t.db, { limit, offset }, { search });
      const shown = bots.items.map(({ account_id, platform }) => ({ account_id, platform }));
      expect([bots.total, shown]).toEqual([wanted.bots.length, wanted.bots.slice(offset, offset + limit)]);
      const guilds = await discordGuildsOf({ db: t.db, texts }, { limit, offset }, search);
      const ids = guilds.items.map(({ guild_id }) => ({ guild_id }));
      expect([guilds.total, ids]).toEqual([wanted.guilds.length, wanted.guilds.slice(offset, offset + limit)]);
    }
  },
);

test('one is found by its id alone', async () => {
  const rows = { limit: 1, offset: 0 };
  expect(await adminUsers(t.db, rows, { id: uuid(7) })).toMatchObject({ total: 1, items: [{ id: uuid(7) }] });
  expect(await adminUsers(t.db, rows, { id: uuid(PEOPLE) })).toEqual({ total: 0, items: [] });
  expect(await adminAccounts(t.db, rows, { id: uuid(1007) })).toMatchObject({ total: 1, items: [{ id: uuid(1007) }] });
});

test.each([
  ['no such person', [5, 6]],
  // Addresses are no names.
  ['example.com', [4, 4]],
  ['a', [0, 0]],
])('what few hold is looked for in the indexes, what many hold among the rows: %s', async (search, scans_of) => {
  await t.db.query('analyze profiles, accounts');
  const found = await t.db.transaction(async (tx) => {
    const scans = async () => {
      const [row] = await tx.query<{ of: number[] }>(
        `select array_agg(pg_stat_get_xact_numscans(i::regclass)::int order by i) as of
         from unnest(array['accounts_pieces', 'profiles_pieces']) i`,
      );
      return row!.of;
    };
    const before = await scans();
    await adminUsers(tx, { limit: 1, offset: 0 }, { search });
    await adminAccounts(tx, { limit: 1, offset: 0 }, { search });
    await botControlsOf(tx, { limit: 1, offset: 0 }, { search });
    await discordGuildsOf({ db: tx, texts }, { limit: 1, offset: 0 }, search);
    return (await scans()).map((after, n) => after - before[n]!);
  });
  // The names of accounts once, and people once for each of the two; both twice for a page of what accounts have.
  expect(found).toEqual(scans_of);
});
