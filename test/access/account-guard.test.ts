import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { createAccountRights } from '../../access/authorization/account-rights';
import {
  account,
  adminPermission,
  authenticated,
  feature,
  firstParty,
  permission,
} from '../../access/authorization/guards';
import { command, query } from '../../app/operation';
import type { Caller } from '../../access/authentication/caller';
import { prepare } from '../../api/rest/invoke';
import { notFound } from '../../kernel/operations/errors';
import { get, post } from '../../kernel/operations/routes';
import { callerOf, serveDeclared, type DeclaredApi } from '../support/declared-api';
import { testDatabase, type TestDatabase } from '../support/database';
import type { Answer } from '../support/door';

/** Operations on an account that path or input names, asked for by whoever is a member of it and whoever is not. */
const Seen = z.object({ account_id: z.string(), named: z.string(), rights: z.array(z.string()) }).meta({ id: 'Seen' });
const seen = (caller: Caller & { account_id: string }, named: string) => ({
  account_id: caller.account_id,
  named,
  rights: [...caller.permissions].sort(),
});
const errors = { NOTHING_THERE: notFound('Nothing there') };
const operations = [
  query({
    name: 'accountNotes',
    summary: 'By path',
    rest: get('/v1/accounts/{id}/notes', { envelope: 'bare' }),
    guard: [feature('feature:notes'), permission('notes:read'), account('id')],
    input: z.object({ id: z.uuid(), limit: z.int().max(10).optional() }),
    output: Seen,
    errors,
    async run({ input, caller, refuse }) {
      if (input.limit === 7) throw refuse('NOTHING_THERE');
      return seen(caller, input.id);
    },
  }),
  query({
    name: 'accountPlan',
    summary: 'For any member',
    rest: get('/v1/accounts/{id}/plan', { envelope: 'bare' }),
    guard: [firstParty, account('id')],
    input: z.object({ id: z.uuid() }),
    output: Seen,
    run: async ({ input, caller }) => seen(caller, input.id),
  }),
  command({
    name: 'moveNotes',
    summary: 'By input',
    rest: post('/v1/notes/move', { envelope: 'bare' }),
    graphql: { argument: 'input' },
    guard: [permission('notes:edit'), account('account_id')],
    input: z.object({ account_id: z.uuid(), text: z.string().max(3) }).meta({ id: 'MoveNotesInput' }),
    output: Seen,
    run: async ({ input, caller }) => seen(caller, input.account_id),
  }),
];

const [OWN, HELD, FOREIGN, OFF, UNKNOWN] = [randomUUID(), randomUUID(), randomUUID(), randomUUID(), randomUUID()];
const ada = randomUUID();
/** What is no account of Ada's, in every way that it can be written. */
const NOT_HERS: Record<string, string> = {
  foreign: FOREIGN,
  unknown: UNKNOWN,
  malformed: 'none',
  'a number': '7',
  'in upper case': FOREIGN.toUpperCase(),
  'in braces': `{${HELD}}`,
  'without hyphens': HELD.replaceAll('-', ''),
  'with a slash': `${OWN}/x`,
  'with dots': `../../${OWN}`,
  'with a blank': `${OWN} `,
  'two at once': `${OWN},${HELD}`,
  'the id of nobody': '00000000-0000-0000-0000-000000000000',
};

let t: TestDatabase;
let api: DeclaredApi;
let asked: string[];
const callers = {
  ada: callerOf({ user_id: ada, account_id: OWN, permissions: new Set(['notes:read', 'notes:edit', 'billing:read']) }),
  key: callerOf({ kind: 'user_api_key', user_id: ada, account_id: OWN, permissions: new Set(['notes:read']) }),
  system: callerOf({ kind: 'system_key', user_id: null, permissions: new Set(['notes:*']) }),
  weak: callerOf({ kind: 'system_key', user_id: null, permissions: new Set(['events:*']) }),
  overlay: callerOf({ kind: 'overlay', user_id: null, account_id: OWN, permissions: new Set(['notes:read']) }),
};

beforeAll(async () => {
  t = await testDatabase();
  for (const account_id of [OWN, HELD, FOREIGN, OFF]) {
    await t.db.query(`insert into accounts (id, name, owner_id, created_at) values ($1, 'x', $1, now())`, [account_id]);
  }
  await join(OWN, ['notes:read', 'notes:edit', 'billing:read']);
  await join(HELD, ['notes:read']);
  await join(OFF, ['notes:read']);
  const db = {
    ...t.db,
    query: (text: string, values?: unknown[], name?: string) => {
      asked.push(`${name}: ${values?.[0]}`);
      return t.db.query(text, values, name);
    },
  };
  asked = [];
  api = await serveDeclared(
    operations,
    {
      accounts: createAccountRights({ db: db as never }),
      features: {
        enabled: async (_flag, account_id) => {
          asked.push(`feature of ${account_id}`);
          return account_id !== OFF;
        },
      },
    },
    callers,
  );
});
afterAll(async () => {
  await api?.close();
  await t?.drop();
});

async function join(account_id: string, permissions: string[]): Promise<void> {
  const role = randomUUID();
  await t.db.query(
    `insert into account_roles (id, account_id, slug, name, position, is_system, permissions)
     values ($1, $2, 'x', 'x', 0, false, $3)`,
    [role, account_id, permissions],
  );
  await t.db.query(
    `insert into account_members (account_id, user_id, id, role_id, joined_at) values ($1, $2, $3, $3, now())`,
    [account_id, ada, role],
  );
}

const SAYS_REST = ({ status, json }: Answer) => [status, json.error, json.message];
const SAYS_GQL = ({ json }: Answer) => [json.errors[0].extensions.code, json.errors[0].message];
const notes = (id: string, as?: string) => api.rest('GET', `/v1/accounts/${encodeURIComponent(id)}/notes`, { as });
const gqlNotes = (id: unknown, as?: string) =>
  api.gql('query ($id: UUID!) { accountNotes(id: $id) { accountId named rights } }', { as, variables: { id } });
const move = (account_id: unknown, as?: string, text: unknown = 'x') =>
  api.rest('POST', '/v1/notes/move', { as, body: { account_id, text } });

describe('a member', () => {
  test('acts with the rights on the account that is named, not with those on the active one', async () => {
    expect((await notes(OWN)).json).toEqual({
      account_id: OWN,
      named: OWN,
      rights: ['billing:read', 'notes:edit', 'notes:read'],
    });
    expect((await notes(HELD)).json).toEqual({ account_id: HELD, named: HELD, rights: ['notes:read'] });
    expect((await gqlNotes(HELD)).json.data.accountNotes).toEqual({
      accountId: HELD,
      named: HELD,
      rights: ['notes:read'],
    });
    expect(SAYS_REST(await move(HELD))).toEqual([403, 'FORBIDDEN', 'Missing permission: notes:edit']);
    expect((await move(OWN)).json.account_id).toBe(OWN);
  });

  test('names it in upper case too, and the operation sees it in lower case', async () => {
    expect((await notes(HELD.toUpperCase())).json).toMatchObject({ account_id: HELD, named: HELD });
    expect((await gqlNotes(OWN.toUpperCase())).json.data.accountNotes).toMatchObject({ accountId: OWN, named: OWN });
  });

  test('of two accounts in one document has on each its own rights', async () => {
    const ask = () =>
      api.gql(`{ a: accountNotes(id: "${OWN}") { accountId rights } b: accountNotes(id: "${HELD}") { accountId rights }
        c: accountNotes(id: "${FOREIGN}") { accountId rights } }`);
    // More often than it takes to have the document compiled.
    const answers = await Promise.all(Array.from({ length: 8 }, ask));
    for (const { json } of [...answers, await ask()]) {
      expect(json.errors).toMatchObject([{ path: ['c'], message: 'Missing permission: notes:read' }]);
      expect(json.data ?? null).toBeNull();
    }
    const both = await api.gql(
      `{ a: accountNotes(id: "${OWN}") { rights } b: accountNotes(id: "${HELD}") { rights } }`,
    );
    expect(both.json.data).toEqual({
      a: { rights: ['billing:read', 'notes:edit', 'notes:read'] },
      b: { rights: ['notes:read'] },
    });
  });

  test('is judged by the features of the account that is named', async () => {
    expect(SAYS_REST(await notes(OFF))).toEqual([403, 'FEATURE_DISABLED', 'Feature not enabled: feature:notes']);
    expect(SAYS_GQL(await gqlNotes(OFF))).toEqual(['FEATURE_DISABLED', 'Feature not enabled: feature:notes']);
  });

  test('is told of bad input, and of what is not there, after it was let in', async () => {
    expect((await api.rest('GET', `/v1/accounts/${HELD}/notes?limit=11`)).status).toBe(400);
    expect((await api.rest('GET', `/v1/accounts/${HELD}/notes?limit=7`)).status).toBe(404);
    expect((await move(OWN, undefined, 'too long')).status).toBe(400);
  });

  test('who was removed is refused by the next request, and who joins is let in', async () => {
    const [id] = [randomUUID()];
    expect((await notes(id)).status).toBe(403);
    await join(id, ['notes:read']);
    expect((await notes(id)).status).toBe(200);
    await t.db.query('delete from account_members where account_id = $1', [id]);
    expect((await notes(id)).status).toBe(403);
  });
});

describe('who is no member', () => {
  test.each(Object.entries(NOT_HERS))('%s: refused with the same words and the same work', async (_what, named) => {
    asked.length = 0;
    expect(SAYS_REST(await notes(named))).toEqual([403, 'FORBIDDEN', 'Missing permission: notes:read']);
    expect(asked).toEqual([`rights-of-member: ${ada}`]);
    asked.length = 0;
    expect(SAYS_GQL(await gqlNotes(named))).toEqual(['FORBIDDEN', 'Missing permission: notes:read']);
    expect(asked).toEqual([`rights-of-member: ${ada}`]);
    expect(SAYS_REST(await move(named))).toEqual([403, 'FORBIDDEN', 'Missing permission: notes:edit']);
    const plan = await api.rest('GET', `/v1/accounts/${encodeURIComponent(named)}/plan`);
    expect(SAYS_REST(plan)).toEqual([403, 'FORBIDDEN', 'This action requires membership of the account']);
    expect(SAYS_REST(await notes(named, 'key'))).toEqual([403, 'FORBIDDEN', 'Missing permission: notes:read']);
  });

  test.each([
    ['a list', [FOREIGN, OWN]],
    ['a list of one of hers', [OWN]],
    ['an object', { id: OWN }],
    ['null', null],
    ['true', true],
    ['nothing', undefined],
  ])('%s in a body is no account', async (_what, named) => {
    asked.length = 0;
    expect(SAYS_REST(await move(named))).toEqual([403, 'FORBIDDEN', 'Missing permission: notes:edit']);
    expect(asked).toEqual([`rights-of-member: ${ada}`]);
  });

  test('bad input besides does not come first', async () => {
    const bad = await api.rest('GET', `/v1/accounts/${FOREIGN}/notes?limit=11&nonsense=1&__proto__=1`);
    expect(SAYS_REST(bad)).toEqual([403, 'FORBIDDEN', 'Missing permission: notes:read']);
    expect(SAYS_REST(await move(FOREIGN, undefined, 'too long'))).toEqual([
      403,
      'FORBIDDEN',
      'Missing permission: notes:edit',
    ]);
  });

  test('a query cannot put another account in place of the path, and a body neither', async () => {
    const twice = await api.rest('GET', `/v1/accounts/${FOREIGN}/notes?id=${OWN}`);
    expect(SAYS_REST(twice)).toEqual([403, 'FORBIDDEN', 'Missing permission: notes:read']);
    const own = await api.rest('GET', `/v1/accounts/${HELD}/notes?id=${FOREIGN}`);
    expect(own.json).toMatchObject({ account_id: HELD, named: HELD });
    const body = await api.rest('POST', `/v1/notes/move?account_id=${OWN}`, { body: { account_id: HELD, text: 'x' } });
    expect(body.status).toBe(403);
  });

  test('anonymous is asked for a credential first, a key for a person by the first-party gate', async () => {
    expect((await notes(OWN, '')).status).toBe(401);
    const plan = await api.rest('GET', `/v1/accounts/${OWN}/plan`, { as: 'system' });
    expect(SAYS_REST(plan)).toEqual([403, 'FORBIDDEN', 'This action requires a logged-in user']);
    expect((await notes(OWN, 'overlay')).status).toBe(403);
  });
});

describe('an API key', () => {
  test('acts on its own account with its own scope, and on no other of its owner', async () => {
    asked.length = 0;
    expect((await notes(OWN, 'key')).json).toEqual({ account_id: OWN, named: OWN, rights: ['notes:read'] });
    expect((await notes(HELD, 'key')).status).toBe(403);
    expect(asked).toEqual([`feature of ${OWN}`]);
    expect((await move(OWN, 'key')).status).toBe(403);
  });
});

describe('a system key', () => {
  test('acts on every account that exists, by its grants and the features of that account', async () => {
    expect((await notes(FOREIGN, 'system')).json).toMatchObject({ account_id: FOREIGN, named: FOREIGN });
    expect(SAYS_REST(await notes(OFF, 'system'))).toEqual([
      403,
      'FEATURE_DISABLED',
      'Feature not enabled: feature:notes',
    ]);
    expect(SAYS_REST(await notes(FOREIGN, 'weak'))).toEqual([403, 'FORBIDDEN', 'Missing permission: notes:read']);
  });

  test('is told 403 before 400 before 404', async () => {
    expect((await notes(UNKNOWN, 'weak')).status).toBe(403);
    expect((await notes('none', 'weak')).status).toBe(403);
    expect(SAYS_REST(await notes('none', 'system')).slice(0, 2)).toEqual([400, 'VALIDATION_ERROR']);
    expect((await api.rest('GET', `/v1/accounts/${UNKNOWN}/notes?limit=11`, { as: 'system' })).status).toBe(400);
    expect(SAYS_REST(await notes(UNKNOWN, 'system'))).toEqual([404, 'NOT_FOUND', 'Account not found']);
    expect(SAYS_GQL(await gqlNotes(UNKNOWN, 'system'))).toEqual(['NOT_FOUND', 'Account not found']);
  });
});

test('an operation that names an account and has no guard for it does not start', () => {
  const named = (guard: Parameters<typeof query>[0]['guard'], path: string, member: string) =>
    prepare(
      query({
        name: 'open',
        summary: 'x',
        rest: get(path),
        guard,
        input: z.object({ [member]: z.uuid() }),
        output: z.object({}),
        run: async () => ({}),
      }),
      {} as never,
    );
  expect(() => named([authenticated], '/v1/accounts/{id}/x', 'id')).toThrow('open: its input names an account (id)');
  expect(() => named([permission('a:b'), account('other')], '/v1/accounts/{id}/x', 'id')).toThrow('no member');
  expect(() => named([permission('a:b')], '/v1/x', 'account_id')).toThrow('names an account (account_id)');
  expect(() => named([adminPermission('a:b')], '/v1/admin/accounts/{id}', 'id')).not.toThrow();
  expect(() => named([account('id')], '/v1/accounts/{id}/x', 'id')).not.toThrow();
});

test('OpenAPI shows what is needed, and the refusals of strangers', async () => {
  const { json } = await api.rest('GET', '/v1/openapi.json');
  const { description, responses } = json.paths['/v1/accounts/{id}/plan'].get;
  expect(description).toContain('Rights are those on the account that `id` names.');
  expect(responses['403'].description).toContain('This action requires membership of the account');
  expect(json.paths['/v1/notes/move'].post.responses['404'].description).toBe('NOT_FOUND: Account not found');
});
