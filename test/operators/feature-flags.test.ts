import { accountCreation, createFeatureFlags, enabledOf, featureStatuses } from '../../access/authorization/features';
import { generateKey } from '../../access/authentication/keys';
import { withoutReadYourWrites } from '../../app/service-calls';
import type { Services } from '../../app/services';
import { adoptFeatureFlags } from '../../maintenance/upgrade/feature-flag-adoption';
import {
  ACCOUNT_FLAGS,
  featureFlag,
  featureFlagStream,
  flagReason,
  KNOWN_FLAGS,
  PLAN_FLAGS,
} from '../../domain/operators/feature-flags';
import { FREE_PLAN_ID, PRO_PLAN_ID } from '../../domain/billing/plan-limits';
import { asOperator } from '../../cli/admin/shared/operator';
import { featureFlags } from '../../projections/operators/feature-flags';
import { decider } from '../support/decider';
import { type TestDatabase, testDatabase } from '../support/database';
import { enginesOfEach } from '../support/each';
import { feed, uuid } from '../support/identity';
import { probeOf, promised } from '../support/patience';
import type { Engines } from '../support/projections';
import { Client } from '../support/realtime';
import { startServer, type TestServer } from '../support/server';
import { ApiClient } from '../support/vendor-cloud';

const now = '2026-01-02T03:04:05.000Z';
type Needs = Pick<Services, 'db' | 'events' | 'commit' | 'awaitShown'>;
const flag = 'feature:events';
const switched = (enabled: boolean) => ({ type: 'feature_flag:switched', flag, enabled, switched_at: now }) as const;

describe('a global feature flag', () => {
  const given = decider(featureFlag);
  const turn = (enabled: boolean) => ({ type: 'feature_flag:switch', flag, enabled, now }) as const;
  const adopt = { type: 'feature_flag:adopt', flag, enabled: false, now } as const;

  test('is switched, and once', () => {
    given([]).when(turn(false)).then(switched(false));
    given([switched(false)])
      .when(turn(false))
      .thenNothing();
    given([switched(false)])
      .when(turn(true))
      .then(switched(true));
  });
  test('must be one that code asks about', () =>
    given([])
      .when({ ...turn(false), flag: 'feature:none' })
      .thenFails('UNKNOWN_FLAG'));
  test('is adopted only where nothing was said since', () => {
    given([]).when(adopt).then(switched(false));
    given([switched(true)])
      .when(adopt)
      .thenNothing();
  });
});

describe('flags in the database', () => {
  let t: TestDatabase;
  let on: Engines;
  enginesOfEach((database, embedded) => ([t, on] = [database, embedded]));
  const rows = () => t.db.query('select key, enabled from feature_flags order by key');

  test('the last switch counts, also when a page comes twice', async () => {
    await feed(t.db, featureFlags, [switched(false), switched(true), switched(false)], 2);
    expect(await rows()).toEqual([{ key: flag, enabled: false }]);
  });

  test('what operators had set before is appended once, cut off and by two at a time', async () => {
    // As step 0032 leaves it. No code asks about the second any more; it was said all the same.
    await t.db.query(`insert into feature_flags_before_events values
      ('feature:events', false, '2026-01-02T03:04:05Z'), ('feature:gone', true, '2026-01-02T03:04:05Z')`);
    const { events } = on;
    const services: Needs = { db: t.db, ...withoutReadYourWrites(events, () => ({})) };
    const dying: Needs = {
      ...services,
      async commit(_request, writes) {
        await events.append(writes, {});
        throw new Error('the process died here');
      },
    };
    await expect(adoptFeatureFlags(dying, asOperator('upgrade'))).rejects.toThrow('died');
    const adopt = () => adoptFeatureFlags(services, asOperator('upgrade'));
    expect(Math.max(...(await Promise.all([adopt(), adopt()])))).toBe(2);
    expect(await adopt()).toBe(0);

    const stored = await events.read(featureFlagStream(flag));
    expect(stored.map(({ data }) => data)).toEqual([{ flag, enabled: false, switched_at: now }]);
    expect(await events.read(featureFlagStream('feature:gone'))).toHaveLength(1);
  });
});

const SAID = [undefined, true, false] as const;
type Said = (typeof SAID)[number];

/** Why a flag is off, said again in other words: the layers in their order, each asked whether it says off. */
function oracle(category: string, global: Said, plan: Said, override: Said): string | null {
  const granted = ['feature', 'widget', 'integration', 'bot_module'].includes(category)
    ? plan === true || override === true
    : true;
  const says_off = [
    ['global_off', global === false],
    ['plan_locked', !granted],
    ['account_override', override === false],
  ] as const;
  return says_off.find(([, off]) => off)?.[0] ?? null;
}

test('the first layer that says off is the reason, over all there is to say', () => {
  const all = SAID.flatMap((global) => SAID.flatMap((plan) => SAID.map((override) => ({ global, plan, override }))));
  for (const { key, category } of KNOWN_FLAGS)
    for (const said of all)
      expect([key, said, flagReason(key, { ...said, for_account: true })]).toEqual([
        key,
        said,
        oracle(category, said.global, said.plan, said.override),
      ]);
});

test('flags have ids and labels of their own, in the order of their categories', () => {
  expect(new Set(KNOWN_FLAGS.map(({ id }) => id)).size).toBe(KNOWN_FLAGS.length);
  expect(KNOWN_FLAGS.map(({ key, label }) => `${key} ${label}`)).toEqual(
    expect.arrayContaining(['feature:apikeys API keys', 'platform:youtube:login YouTube login', 'platform:kick Kick']),
  );
  expect(ACCOUNT_FLAGS.some(({ category }) => category === 'system')).toBe(false);
});

describe('what an account has', () => {
  let t: TestDatabase;
  beforeAll(async () => {
    t = await testDatabase();
  });
  afterAll(() => t.drop());

  test('is what all layers come to, the same for guards and lists', async () => {
    const accounts = Array.from({ length: 27 }, (_, n) => uuid(100 + n));
    const plans = [FREE_PLAN_ID, PRO_PLAN_ID, uuid(1)];
    // Layers that are drawn once and looked at from every account.
    const draw = (a: number, b: number): Said => SAID[(a * 7 + b * 5 + ((a * b) % 11)) % 3];
    const rows = { global: [] as object[], plan: [] as object[], override: [] as object[] };
    for (const [n, { key }] of KNOWN_FLAGS.entries()) {
      if (draw(n, 0) !== undefined) rows.global.push({ key, enabled: draw(n, 0) });
      for (const [p, plan_id] of plans.entries())
        if (draw(n, p + 1) !== undefined) rows.plan.push({ plan_id, flag: key, enabled: draw(n, p + 1) });
      for (const [a, account_id] of accounts.entries())
        if (draw(n, a + 4) !== undefined) rows.override.push({ account_id, flag: key, enabled: draw(n, a + 4) });
    }
    await t.db.query(
      `insert into feature_flags select key, enabled, now()
       from jsonb_to_recordset($1::jsonb) as r (key text, enabled boolean)`,
      [JSON.stringify(rows.global)],
    );
    await t.db.query(
      `insert into plan_features select * from jsonb_to_recordset($1::jsonb) as r (plan_id uuid, flag text, enabled boolean)`,
      [JSON.stringify(rows.plan)],
    );
    await t.db.query(
      `insert into account_feature_overrides select account_id, flag, enabled, now()
       from jsonb_to_recordset($1::jsonb) as r (account_id uuid, flag text, enabled boolean)`,
      [JSON.stringify(rows.override)],
    );
    // Every third account was never given a plan, and so is on the free one.
    const on = accounts.map((account_id, a) => ({ account_id, plan: a % 3 }));
    await t.db.query(
      `insert into account_plans select account_id, plan_id, now()
       from jsonb_to_recordset($1::jsonb) as r (account_id uuid, plan_id uuid)`,
      [JSON.stringify(on.filter(({ plan }) => plan > 0).map((one) => ({ ...one, plan_id: plans[one.plan] })))],
    );

    const features = createFeatureFlags({ db: t.db });
    for (const [a, { account_id, plan }] of on.entries()) {
      const statuses = await featureStatuses(t.db, account_id);
      const expected = KNOWN_FLAGS.map(({ key, category }, n) => {
        const reason = oracle(category, draw(n, 0), draw(n, plan + 1), draw(n, a + 4));
        return { key, category, enabled: reason === null, reason };
      });
      expect(statuses).toEqual(
        expected.filter(({ category }) => category !== 'system').map(({ category: _category, ...status }) => status),
      );
      const guards = await Promise.all(expected.map(async ({ key }) => features.enabled(key, account_id)));
      expect(guards).toEqual(expected.map(({ enabled }) => enabled));
      expect(enabledOf(statuses)).toEqual(statuses.filter(({ reason }) => reason === null).map(({ key }) => key));
    }
    expect(await features.enabled('feature:none', accounts[0]!)).toBe(false);
  });

  test('is asked for once, until it is told that it changed', async () => {
    let reads = 0;
    const db = { ...t.db, query: ((...query) => ((reads += 1), t.db.query(...query))) as TestDatabase['db']['query'] };
    const features = createFeatureFlags({ db: db as TestDatabase['db'] });
    const ask = async (account_id: string) => {
      await Promise.all(PLAN_FLAGS.map(async ({ key }) => features.enabled(key, account_id)));
      return reads;
    };
    expect([await ask(uuid(100)), await ask(uuid(101)), await ask(uuid(100))]).toEqual([1, 2, 2]);
    features.forget({ user_id: uuid(100) });
    features.forget({ credential_id: 'c' });
    expect(await ask(uuid(100))).toBe(2);
    features.forget({ account_id: uuid(100) });
    expect([await ask(uuid(100)), await ask(uuid(101))]).toEqual([3, 3]);
    features.forget({});
    expect([await ask(uuid(100)), await ask(uuid(101))]).toEqual([4, 5]);
  });

  test('accounts are made as the switch says, always, or never', async () => {
    const key = 'system:account_creation';
    const user_id = uuid(7);
    const cases = [
      [undefined, 'default', null],
      [undefined, 'deny', 'user_override'],
      [undefined, 'allow', null],
      [false, 'default', 'global_off'],
      [false, 'deny', 'global_off'],
      [false, 'allow', null],
    ] as const;
    for (const [global, override, reason] of cases) {
      await t.db.query('delete from feature_flags where key = $1', [key]);
      await t.db.query('insert into feature_flags select $1, false, now() where $2', [key, global === false]);
      await t.db.query(
        `insert into user_overrides (user_id, account_creation) values ($1, $2)
         on conflict (user_id) do update set account_creation = excluded.account_creation`,
        [user_id, override],
      );
      expect(await accountCreation(t.db, user_id)).toEqual({ key, enabled: reason === null, reason });
    }
    expect(await accountCreation(t.db, uuid(8))).toMatchObject({ enabled: false, reason: 'global_off' });
  });
});

describe('features on two servers', () => {
  let one: TestServer;
  let two: TestServer;
  let owner: ApiClient;
  let elsewhere: ApiClient;
  let account_id: string;

  beforeAll(async () => {
    one = await startServer();
    const { LUMIO_DATABASE__URL, LUMIO_SECRETS__KEYS } = one.env;
    two = await startServer({
      env: { LUMIO_DATABASE__URL: LUMIO_DATABASE__URL!, LUMIO_SECRETS__KEYS: LUMIO_SECRETS__KEYS! },
    });
    account_id = one.credentials.account_id;
    owner = new ApiClient(one.base_url, one.credentials.access_token);
    elsewhere = new ApiClient(two.base_url, two.credentials.user_api_key);
  });
  afterAll(async () => {
    await two?.dispose();
    await one?.dispose();
  });

  const flag = KNOWN_FLAGS.find(({ key }) => key === 'feature:events')!;
  const turn = (enabled: boolean, by = owner) => by.send('PATCH', `/v1/admin/feature-flags/${flag.id}`, { enabled });

  test('lists say what is on, and why the rest is off, in the words of each protocol', async () => {
    const statuses = await owner.get(`/v1/accounts/${account_id}/feature-statuses`);
    expect(statuses.status).toBe(200);
    expect(statuses.body.data.map(({ key }: { key: string }) => key)).toEqual(ACCOUNT_FLAGS.map(({ key }) => key));
    const keys = (await owner.get(`/v1/accounts/${account_id}/enabled-features`)).body.data;
    expect(keys).toContain('feature:events');

    await turn(false);
    const off = { key: 'feature:events', enabled: false };
    const after = await owner.get(`/v1/accounts/${account_id}/feature-statuses`);
    expect(after.body.data).toContainEqual({ ...off, reason: 'global_off' });
    const { data } = await owner.gql('{ accountFeatures { enabledFeatures featureStatuses { key enabled reason } } }');
    expect(data.accountFeatures.featureStatuses).toContainEqual({ ...off, reason: 'GLOBAL_OFF' });
    expect(data.accountFeatures.enabledFeatures).toEqual(keys.filter((key: string) => key !== 'feature:events'));
    const open = new ApiClient(one.base_url, '');
    expect((await open.get('/v1/features/enabled')).body.data).not.toContain('feature:events');
    await turn(true);
    expect((await open.get('/v1/features/enabled')).body.data).toContain('feature:events');
  });

  test('a system key says on which account it asks for features', async () => {
    const key = new ApiClient(one.base_url, one.credentials.system_key);
    const { errors } = await key.gql('{ accountFeatures { enabledFeatures } }');
    expect(errors[0]).toMatchObject({
      message: 'An account is required: send its id in the X-Lumio-Account header',
      extensions: { code: 'BAD_REQUEST' },
    });
  });

  test('the account must be the active one, whatever the caller; a popout token needs no permission', async () => {
    const { other } = one.credentials;
    const stranger = new ApiClient(one.base_url, other.access_token);
    const { key, hash, prefix } = generateKey('popout');
    await one.database!.db.query(
      `insert into popout_tokens (id, account_id, user_id, created_by, token_hash, token_prefix, permissions, created_at)
       values ($1, $2, $3, $3, $4, $5, '{}', now())`,
      [uuid(77), account_id, one.credentials.user_id, hash, prefix],
    );
    for (const path of ['enabled-features', 'feature-statuses']) {
      const at = `/v1/accounts/${account_id}/${path}`;
      expect(await stranger.get(at)).toMatchObject({ status: 403, body: { error: 'FORBIDDEN' } });
      expect(await new ApiClient(one.base_url, key).get(at)).toMatchObject({ status: 200 });
      expect(await new ApiClient(one.base_url, '').get(at)).toMatchObject({ status: 401 });
    }
    // Whose member they are as well, but not at this moment.
    await one.database!.db.query(
      `insert into account_members (account_id, user_id, id, role_id, joined_at)
       select account_id, $2, $3, role_id, now() from account_members where account_id = $1`,
      [account_id, other.user_id, uuid(78)],
    );
    const at = `/v1/accounts/${account_id}/feature-statuses`;
    expect(await stranger.get(at)).toMatchObject({
      status: 403,
      body: { message: 'This action requires the account to be the active one' },
    });
    await one.database!.db.query('delete from account_members where id = $1', [uuid(78)]);
  });

  test('only an operator switches, and what there is', async () => {
    const stranger = new ApiClient(one.base_url, one.credentials.other.access_token);
    expect(await turn(false, stranger)).toMatchObject({
      status: 403,
      body: { message: 'Missing permission: feature-flags:edit' },
    });
    expect(await owner.send('PATCH', `/v1/admin/feature-flags/${uuid(1)}`, { enabled: true })).toMatchObject({
      status: 404,
      body: { message: 'Feature flag not found' },
    });
    const { data } = await owner.gql('{ adminFeatureFlags(category: WIDGET) { key category enabled label } }');
    expect(data.adminFeatureFlags).toHaveLength(8);
    expect((await owner.get('/v1/admin/feature-flags?search=API')).body.data).toMatchObject([
      { key: 'feature:apikeys', label: 'API keys', enabled: true },
    ]);
  });

  test('a global switch holds at once here, within a second elsewhere, and ends channels on both', async () => {
    const channel = `events:${account_id}`;
    const clients = [
      await Client.open(one.ws_url, one.credentials.access_token),
      await Client.open(two.ws_url, two.credentials.access_token),
    ];
    for (const client of clients) expect(await client.subscribe(channel)).toMatchObject({ type: 'subscribed' });
    const refused = {
      status: 403,
      body: { error: 'FEATURE_DISABLED', message: 'Feature not enabled: feature:events' },
    };
    expect((await elsewhere.get('/v1/events')).status).toBe(200);

    expect(await turn(false)).toMatchObject({ status: 200, body: { data: { key: flag.key, enabled: false } } });
    expect(await owner.get('/v1/events')).toMatchObject(refused);
    const over = async () => {
      const answer = await elsewhere.get('/v1/events');
      return answer.status === 403 ? answer : undefined;
    };
    expect(await promised(over, 'the other server', 1_000, probeOf(elsewhere))).toMatchObject(refused);
    for (const client of clients) {
      const ended = await client.next(({ type }) => type === 'error', 'the end of the channel');
      expect(ended).toMatchObject({ code: 'FEATURE_DISABLED', channel });
      client.end();
    }
    await turn(true);
    expect((await owner.get('/v1/events')).status).toBe(200);
  });
});
