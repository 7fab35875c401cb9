import { randomUUID } from 'node:crypto';
import { variableValue, type VariableValue } from '../../domain/automation/automation-variables';
import { automationVariablesEraser } from '../../privacy/erasure/automation-variables';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import { createPersonalTexts } from '../../privacy/subject-keys/texts';
import {
  addToVariable,
  type PersonalValue,
  readVariables,
  sealVariable,
  setVariable,
} from '../../services/automation/automations/variables';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { type TestDatabase, testDatabase } from '../support/database';
import { ownerAndStranger, sharedServer } from '../support/shared-server';
import { ApiClient, eventually } from '../support/vendor-cloud';

test('a text keeps the type of its variable, and gives a new one its type', () => {
  expect(variableValue('5', undefined)).toBe(5);
  expect(variableValue('-0.5', 'number')).toBe(-0.5);
  expect(variableValue('5', 'text')).toBe('5');
  expect(variableValue('007', undefined)).toBe('007');
  expect(variableValue('12345678901234567890', undefined)).toBe('12345678901234567890');
  expect(variableValue('true', undefined)).toBe(true);
  expect(variableValue('true', 'number')).toBe('true');
  expect(variableValue('__proto__', 'boolean')).toBe('__proto__');
});

describe('variables of runs', () => {
  let t: TestDatabase;
  beforeAll(async () => {
    t = await testDatabase();
  });
  afterAll(() => t?.drop());

  const set = (account_id: string, name: string, value: VariableValue | PersonalValue) =>
    t.db.transaction((tx) => setVariable(tx, { account_id, name }, value));
  const add = (account_id: string, name: string, amount: number) =>
    t.db.transaction((tx) => addToVariable(tx, { account_id, name }, amount));

  test('eight concurrent additions sum up; other types and infinite sums fail', async () => {
    const account_id = randomUUID();
    await Promise.all(Array.from({ length: 8 }, (_, n) => add(account_id, 'count', n + 1)));
    expect(await add(account_id, 'count', 0.5)).toEqual({ type: 'number', value: 36.5 });
    await set(account_id, 'text', 'abc');
    expect(await add(account_id, 'text', 1)).toEqual({ error: 'NOT_A_NUMBER' });
    await set(account_id, 'large', Number.MAX_VALUE);
    expect(await add(account_id, 'large', Number.MAX_VALUE)).toEqual({ error: 'NUMBER_TOO_LARGE' });
    expect(await set(account_id, 'long', 'x'.repeat(501))).toEqual({ error: 'TEXT_TOO_LONG' });
  });

  test('an account has at most 200, exactly, among concurrent writers', async () => {
    const account_id = randomUUID();
    await t.db.query(
      `insert into automation_variables (account_id, name, type, value)
       select $1, 'v' || n, 'number', '0' from generate_series(1, 196) n`,
      [account_id],
    );
    const results = await Promise.all(Array.from({ length: 8 }, (_, n) => add(account_id, `new${n}`, 1)));
    expect(results.filter((one) => 'error' in one)).toEqual(Array(4).fill({ error: 'TOO_MANY_VARIABLES' }));
    expect(await add(account_id, 'v1', 1)).toEqual({ type: 'number', value: 1 });
  });

  test('a text about a person is sealed, and goes with the person', async () => {
    const subject_keys = createSubjectKeys({
      db: t.db,
      master_keys: parseMasterKeys(`test:${Buffer.alloc(32, 7).toString('base64')}`),
    });
    const texts = createPersonalTexts(subject_keys);
    const account_id = randomUUID();
    const person = (await subject_keys.hashesOf(['twitch:1'])).get('twitch:1')!;
    const about = { text: 'Ada\u0000', subject: 'twitch:1', person, is_identity: true };
    await set(account_id, 'last', await sealVariable(texts, { account_id, name: 'last' }, about));
    const amount = { ...about, text: '7', is_identity: false };
    await set(account_id, 'amount', await sealVariable(texts, { account_id, name: 'amount' }, amount));
    const read = async () =>
      (await readVariables({ db: t.db, texts }, account_id)).map(({ name, value }) => [name, value]);
    expect(await read()).toEqual([
      ['amount', 7],
      ['last', 'Ada\u0000'],
    ]);
    const [row] = await t.db.query(`select * from automation_variables where name = 'last'`);
    expect(JSON.stringify(row)).not.toContain('Ada');
    const services = { db: t.db, subject_keys, texts } as never;
    const of = { subject: 'twitch:1', kind: 'twitch', id: '1' };
    expect(await automationVariablesEraser.names(of, services)).toBe(true);
    await subject_keys.erase('twitch:1');
    expect(await read()).toEqual([['amount', 7]]);
    expect(await automationVariablesEraser.erase(of, services)).toBe('1 variables of automations erased');
    expect(await automationVariablesEraser.names(of, services)).toBe(false);
  });

  test('a dissolved account gets none', async () => {
    const account_id = randomUUID();
    await t.db.query('insert into dissolved_accounts (account_id) values ($1)', [account_id]);
    expect(await add(account_id, 'count', 1)).toEqual({ error: 'TOO_MANY_VARIABLES' });
  });
});

describe('variables on the server', () => {
  test('are set, listed, replaced and deleted on both protocols, by their account alone', async () => {
    const server = await sharedServer();
    const { owner, stranger, account } = await ownerAndStranger(server);
    const put = (api: ApiClient, name: string, body: object) =>
      api.send('PUT', `/v1/automations/variables/${name}`, body);
    for (const [name, body] of [
      ['a-b', { type: 'text', value: 'x' }],
      ['x'.repeat(51), { type: 'text', value: 'x' }],
      ['a', { type: 'text', value: 1 }],
      ['a', { type: 'number', value: '1' }],
      ['a', { type: 'boolean', value: null }],
      ['a', { type: 'text', value: 'x'.repeat(501) }],
      ['a', { type: 'text' }],
      ['a', { type: 'object', value: {} }],
    ] as const)
      expect(await put(owner, name, body)).toMatchObject({ status: 400, body: { error: 'VALIDATION_ERROR' } });
    expect((await put(owner, 'deaths', { type: 'number', value: 0 })).body.data).toEqual({
      ...{ name: 'deaths', type: 'number', value: 0 },
      updated_at: expect.any(String),
    });
    const set = 'mutation { setAutomationVariable(name: "__proto__", type: "text", value: "{{x}}") { name value } }';
    expect((await owner.gql(set)).data.setAutomationVariable).toEqual({ name: '__proto__', value: '{{x}}' });
    await put(owner, 'deaths', { type: 'boolean', value: true });
    const listed = (await owner.get('/v1/automations/variables')).body.data;
    expect(listed).toMatchObject([
      { name: '__proto__', value: '{{x}}' },
      { name: 'deaths', type: 'boolean', value: true },
    ]);
    expect((await owner.gql('{ automationVariables { name type value } }')).data.automationVariables).toHaveLength(2);
    expect((await stranger.get('/v1/automations/variables')).body.data).toEqual([]);

    const moderator = server.client((await server.member(account.account_id, 'moderator')).access_token);
    expect((await moderator.get('/v1/automations/variables')).body.data).toHaveLength(2);
    expect((await put(moderator, 'deaths', { type: 'number', value: 1 })).status).toBe(403);

    const remove = async (api: ApiClient) =>
      (await api.send('DELETE', '/v1/automations/variables/deaths', undefined)).status;
    expect([await remove(moderator), await remove(stranger), await remove(owner), await remove(owner)]).toEqual([
      403, 404, 204, 404,
    ]);
    const changes = await eventually(async () => {
      const log = (await owner.get('/v1/account/audit-log')).body.data as { action: string }[];
      const found = log.map(({ action }) => action).filter((action) => action.startsWith('automation_variable:'));
      return found.length === 4 ? found : undefined;
    }, 'the entries of the changes');
    expect(changes[0]).toBe('automation_variable:deleted');
  });

  test('the limit answers 409, an earlier name is replaced, and a dissolved account keeps none', async () => {
    const server = await sharedServer();
    const { owner, account } = await ownerAndStranger(server);
    const put = async (n: number) =>
      (await owner.send('PUT', `/v1/automations/variables/v${n}`, { type: 'number', value: n })).status;
    expect(await put(0)).toBe(200);
    const db = new PostgresDatabase({ url: server.database_url, name: 'test', size: 1 });
    const { account_id } = account;
    await db.query(
      `insert into automation_variables (account_id, name, type, value)
       select $1, 'v' || n, 'number', '0' from generate_series(1, 197) n`,
      [account_id],
    );
    const answers = await Promise.all([198, 199, 200, 201, 202].map(put));
    expect(answers.sort()).toEqual([200, 200, 409, 409, 409]);
    expect(await put(0)).toBe(200);
    expect((await owner.get('/v1/automations/variables')).body.data).toHaveLength(200);
    expect(await owner.send('DELETE', `/v1/accounts/${account_id}`, { confirm_name: account.name })).toMatchObject({
      status: 200,
    });
    await eventually(async () => {
      const rows = await db.query('select 1 as one from automation_variables where account_id = $1', [account_id]);
      return rows.length === 0 || undefined;
    }, 'the end of the variables');
    await db.close();
  });
});
