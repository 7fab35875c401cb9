import { handle } from '../../app/write-path/command-handler';
import { accountAllowance, limitOf } from '../../access/authorization/plan-limits';
import { changePlan } from '../../services/billing/plan-changes';
import type { Services } from '../../app/services';
import { load } from '../../app/write-path/aggregate-cache';
import { asOperator } from '../../cli/admin/shared/operator';
import { account, accountStream } from '../../domain/accounts/accounts';
import { PLAN_FLAGS } from '../../domain/operators/feature-flags';
import { FREE_PLAN_ID, PLAN_LIMITS, PRO_PLAN_ID, SEEDED_LIMITS } from '../../domain/billing/plan-limits';
import { plan, planStream, SEEDED_PLANS, seedOf, type Offer, type PlanEvent } from '../../domain/billing/plans';
import { userOverrides, userOverrideStream } from '../../domain/identity/user-overrides';
import type { EventProjection } from '../../kernel/projection';
import { adoptPlanFlags } from '../../maintenance/upgrade/plan-flag-adoption';
import { seedPlans } from '../../maintenance/upgrade/plan-seeds';
import { accounts } from '../../projections/accounts/accounts';
import { plans as plansModel } from '../../projections/billing/plans';
import { userOverrides as userOverridesModel } from '../../projections/identity/user-overrides';
import { testDatabase, type TestDatabase } from '../support/database';
import type { Door } from '../support/door';
import { decider } from '../support/decider';
import { uuid } from '../support/identity';
import { engines, type Engines } from '../support/projections';
import { sharedServer, type SharedServer } from '../support/shared-server';
import { Client } from '../support/realtime';
import { eventually } from '../support/vendor-cloud';

const now = '2026-01-02T03:04:05.000Z';
const plan_id = uuid(1);
const offer: Offer = {
  name: 'Studio',
  description: null,
  price_monthly: 900,
  price_yearly: 9000,
  currency: 'USD',
  is_public: true,
  sort_order: 2,
  limits: { max_overlays: 10, max_accounts: 5 },
  stripe_product_id: null,
  stripe_monthly_price_id: null,
  stripe_yearly_price_id: null,
};
const create = { type: 'plan:create', plan_id, slug: 'studio', offer, now } as const;
const created: PlanEvent = { type: 'plan:created', plan_id, slug: 'studio', ...offer, created_at: now };
const joined: PlanEvent = { type: 'plan:account_joined', plan_id, joined_at: now };
const left: PlanEvent = { type: 'plan:account_left', plan_id, left_at: now };
const deleted: PlanEvent = { type: 'plan:deleted', plan_id, slug: 'studio', deleted_at: now };

describe('a plan', () => {
  const given = decider(plan);

  test('is created once', () => {
    given([]).when(create).then(created);
    given([created]).when(create).thenFails('PLAN_EXISTS');
  });
  test.each(['a', 'a'.repeat(41), 'Pro', 'pro--plus', '-pro', 'pro-', 'pro plus', 'pro_plus', 'prö', 'pro\n'])(
    'has no slug like %j',
    (slug) =>
      given([])
        .when({ ...create, slug })
        .thenFails('INVALID_SLUG'),
  );
  test.each(['ab', 'a'.repeat(40), 'pro-2', '2-x-3'])('may have the slug %j', (slug) =>
    given([])
      .when({ ...create, slug })
      .then({ ...created, slug } as PlanEvent),
  );
  test.each([
    [{ price_monthly: -1 }, 'NEGATIVE_PRICE'],
    [{ price_yearly: -1 }, 'NEGATIVE_PRICE'],
    [{ limits: { max_overlays: -1 } }, 'NEGATIVE_LIMIT'],
    [{ limits: { max_overlay: 1 } }, 'UNKNOWN_LIMIT'],
    [{ limits: { constructor: 1 } }, 'UNKNOWN_LIMIT'],
    [{ name: ' ' }, 'NAME_REQUIRED'],
  ])('%j is refused as %s', (wrong, reason) => {
    given([])
      .when({ ...create, offer: { ...offer, ...wrong } as Offer })
      .thenFails(reason);
    given([created])
      .when({ type: 'plan:edit', offer: { ...offer, ...wrong } as Offer, now })
      .thenFails(reason);
  });
  test('is edited, and once', () => {
    const edited: PlanEvent = { type: 'plan:edited', plan_id, ...offer, price_monthly: 1000, edited_at: now };
    const edit = { type: 'plan:edit', offer: { ...offer, price_monthly: 1000 }, now } as const;
    given([created]).when(edit).then(edited);
    given([created, edited]).when(edit).thenNothing();
    given([created, deleted]).when(edit).thenFails('PLAN_NOT_FOUND');
    const limits = { max_overlays: null, max_sounds: 4 };
    const { limits: _limits, ...rest } = offer;
    given([created])
      .when({ type: 'plan:edit', offer: { name: 'Big', limits }, now })
      .then({
        ...rest,
        type: 'plan:edited',
        plan_id,
        name: 'Big',
        limits: { max_accounts: 5, max_sounds: 4 },
        edited_at: now,
      });
  });
  test('gives features, of which only those that change are said', () => {
    const set: PlanEvent = {
      type: 'plan:features_set',
      plan_id,
      features: [{ flag: 'feature:events', enabled: true }],
      set_at: now,
    };
    const give = { 'feature:events': true, 'feature:sounds': false };
    given([created]).when({ type: 'plan:set_features', features: give, now }).then(set);
    given([created, set]).when({ type: 'plan:set_features', features: give, now }).thenNothing();
    for (const flag of ['system:ideas_hub', 'platform:kick', 'feature:none'])
      given([created])
        .when({ type: 'plan:set_features', features: { [flag]: true }, now })
        .thenFails('UNKNOWN_FLAG');
  });
  test('is deleted when no account is on it, and the free one never', () => {
    const remove = { type: 'plan:delete', now } as const;
    given([created, joined]).when(remove).thenFails('PLAN_IN_USE');
    given([created, joined, left]).when(remove).then(deleted);
    given([created, deleted]).when(remove).thenFails('PLAN_NOT_FOUND');
    given([created, deleted]).when({ type: 'plan:join', now }).thenFails('PLAN_NOT_FOUND');
    const free: PlanEvent = { ...created, plan_id: FREE_PLAN_ID, slug: 'free' } as PlanEvent;
    given([free]).when(remove).thenFails('FREE_PLAN_STAYS');
    given([free]).when({ type: 'plan:join', now }).thenNothing();
  });
  test('is seeded once in the life of an installation', () => {
    for (const seeded of SEEDED_PLANS) {
      const seed = seedOf(seeded, now);
      const events = plan.decide(plan.initial, seed);
      expect(events[0]).toMatchObject({ type: 'plan:created', slug: seeded.slug, limits: SEEDED_LIMITS[seeded.slug] });
      given(events).when(seed).thenNothing();
      given([...events, { ...deleted, plan_id: seeded.plan_id } as PlanEvent])
        .when(seed)
        .thenNothing();
    }
  });
});

describe('plans in the database', () => {
  type Needs = Pick<Services, 'db' | 'events' | 'commit' | 'awaitShown'>;
  let t: TestDatabase;
  let on: Engines;
  let services: Needs;
  const [ada, bob, first, second, third] = [uuid(21), uuid(22), uuid(31), uuid(32), uuid(33)];
  const operator = () => asOperator('test');

  beforeAll(async () => {
    t = await testDatabase();
    on = await engines(t.db);
    const { events } = on;
    services = {
      db: t.db,
      events,
      commit: (_request, writes) => events.append(writes, {}),
      awaitShown: async () => undefined,
    };
    await Promise.all([seedPlans(services, operator()), seedPlans(services, operator())]);
    for (const [n, [account_id, owner_id]] of [
      [first, ada],
      [second, ada],
      [third, bob],
    ].entries())
      await handle(operator(), services, {
        decider: account,
        stream: accountStream(account_id!),
        command: {
          type: 'account:create',
          account_id: account_id!,
          name: 'A',
          owner_id: owner_id!,
          membership_id: uuid(40 + n),
          role_ids: [1, 2, 3, 4].map((r) => uuid(100 * (n + 1) + r)),
          now,
        },
      });
  });
  afterAll(async () => {
    await on.close();
    await t.drop();
  });

  /** Applies all that is stored to the read models, from zero or once more over what they hold. */
  async function project(): Promise<void> {
    for (const projection of [accounts, plansModel, userOverridesModel] as EventProjection[])
      for await (const { events } of on.events.readAll(null, projection.from))
        await t.db.transaction((tx) => projection.apply(events, tx, { rebuilding: true }));
  }
  const TABLES = ['plans', 'plan_features', 'account_plans', 'account_limit_overrides', 'user_overrides'];
  const rows = () =>
    Promise.all(TABLES.map((table) => t.db.query(`select to_jsonb(r) as row from ${table} r order by 1`)));
  const overrideLimits = (account_id: string, overrides: Record<string, number | null>) =>
    handle(operator(), services, {
      decider: account,
      stream: accountStream(account_id),
      command: { type: 'account:set_limit_overrides', overrides, now },
    });

  test('begin with free and pro, seeded once however many nodes start, and say the same when replayed', async () => {
    await project();
    const before = await rows();
    expect(before[0]).toHaveLength(2);
    await project();
    expect(await rows()).toEqual(before);
    await t.db.query(`truncate ${TABLES.join()}`);
    await project();
    expect(await rows()).toEqual(before);
    expect(await on.events.read(planStream(FREE_PLAN_ID))).toHaveLength(1);
    expect(await on.events.read(planStream(PRO_PLAN_ID))).toHaveLength(2);
  });

  test('take the flags that a release added once, where a migration noted them', async () => {
    const noted = 'insert into plan_flags_to_adopt (plan_id, flag) values ($1, $2), ($3, $2)';
    await t.db.query(noted, [FREE_PLAN_ID, 'widget:text', uuid(77)]);
    const adopt = () => adoptPlanFlags(services, operator());
    expect((await Promise.all([adopt(), adopt()])).some((plans) => plans === 2)).toBe(true);
    const turnOff = { type: 'plan:set_features', features: { 'widget:text': false }, now } as const;
    await handle(operator(), services, { decider: plan, stream: planStream(FREE_PLAN_ID), command: turnOff });
    expect(await adopt()).toBe(0);
    expect((await load(on.events, plan, planStream(FREE_PLAN_ID)))!.state.features.get('widget:text')).toBe(false);
  });

  test('bound an account by its own limit, then its plan, then the default', async () => {
    expect(await limitOf(t.db, first, 'max_overlays')).toBe(3);
    await changePlan(operator(), services, first, PRO_PLAN_ID);
    await overrideLimits(second, { max_overlays: 0, max_sounds: 7 });
    await project();
    expect(await limitOf(t.db, first, 'max_overlays')).toBe(25);
    expect(await limitOf(t.db, first, 'max_sounds')).toBe(PLAN_LIMITS.max_sounds);
    expect(await limitOf(t.db, second, 'max_overlays')).toBe(0);
    expect(await limitOf(t.db, second, 'max_sounds')).toBe(7);
    await overrideLimits(second, { max_overlays: null });
    await project();
    expect(await limitOf(t.db, second, 'max_overlays')).toBe(3);
    // Nothing is known of it: what holds is what an installation begins with.
    expect(await limitOf(t.db, uuid(99), 'max_accounts')).toBe(1);
  });

  test('give a user the most accounts that a plan of theirs gives, unless an operator said otherwise', async () => {
    expect(await accountAllowance(t.db, ada)).toEqual({ owned: 2, max_accounts: 3, best_account_id: first });
    expect(await accountAllowance(t.db, bob)).toEqual({ owned: 1, max_accounts: 1, best_account_id: third });
    expect(await accountAllowance(t.db, uuid(99))).toEqual({ owned: 0, max_accounts: 1, best_account_id: null });
    const set = (max_accounts: number | null) =>
      handle(operator(), services, {
        decider: userOverrides,
        stream: userOverrideStream(ada),
        command: { type: 'user_override:set_max_accounts', user_id: ada, max_accounts, now },
      });
    await set(0);
    await project();
    expect(await accountAllowance(t.db, ada)).toMatchObject({ max_accounts: 0 });
    await set(null);
    await project();
    expect(await accountAllowance(t.db, ada)).toMatchObject({ max_accounts: 3 });
  });

  test('are never deleted under an account, however assignment and deletion meet', async () => {
    for (let round = 0; round < 12; round += 1) {
      const id = uuid(500 + round);
      const on_plan = planStream(id);
      const command = { ...create, plan_id: id };
      await handle(operator(), services, { decider: plan, stream: on_plan, command });
      const from = (await load(on.events, account, accountStream(third)))!.state.plan_id;
      const remove = () =>
        handle(operator(), services, { decider: plan, stream: on_plan, command: { type: 'plan:delete', now } });
      const [moved, removed] = await Promise.allSettled([changePlan(operator(), services, third, id), remove()]);
      const { state } = (await load(on.events, plan, on_plan))!;
      const { plan_id: now_on } = (await load(on.events, account, accountStream(third)))!.state;
      expect([moved.status, removed.status].sort()).toEqual(['fulfilled', 'rejected']);
      expect([state.status, state.accounts, now_on]).toEqual(
        moved.status === 'fulfilled' ? ['offered', 1, id] : ['deleted', 0, from],
      );
      // The free plan counts nobody.
      const left_behind = moved.status === 'rejected' && from !== FREE_PLAN_ID ? 1 : 0;
      expect((await load(on.events, plan, planStream(from)))!.state.accounts).toBe(left_behind);
    }
  });
});

describe('plans on the server', () => {
  let server: SharedServer;
  let operator: Door;
  let stranger: Door;
  let nobody: Door;

  beforeAll(async () => {
    server = await sharedServer();
    const owner = await server.account();
    await server.operator.setAdminRole(owner.user_id, 'super-admin', true);
    ({ door: operator } = await server.session(owner.user_id, owner.account_id));
    ({ door: stranger } = await server.account());
    nobody = server.door('');
  });

  const body = {
    slug: 'studio',
    name: 'Studio',
    price_monthly: 900,
    price_yearly: 9000,
    is_public: true,
    sort_order: 5,
    max_overlays: 10,
    max_storage_bytes: 5_000_000_000,
    max_upload_size_bytes: 10_000_000,
    max_integrations: 4,
    chat_retention_days: 0,
  };
  const { slug: _slug, ...edit } = { ...body, currency: 'EUR' };
  const make = async (slug: string, more: object = {}) => {
    const { status, json } = await operator.rest('POST', '/v1/admin/plans', { body: { ...body, slug, ...more } });
    expect([status, json]).toEqual([201, expect.anything()]);
    return json.data;
  };
  /** A new account without a feature of its own, and its owner. */
  const newcomer = async (name: string) => {
    const { user_id } = await server.user();
    const { account_id } = await server.operator.createAccount({ owner_id: user_id, name });
    return server.session(user_id, account_id);
  };

  test('are there from the start, and everybody sees those that are public', async () => {
    const { json } = await operator.rest('GET', '/v1/admin/plans');
    const [own_free, own_pro] = json.data;
    expect(own_free).toMatchObject({ id: FREE_PLAN_ID, slug: 'free', max_overlays: 3, max_integrations: 2 });
    expect(own_pro).toMatchObject({ id: PRO_PLAN_ID, slug: 'pro', max_overlays: 25, chat_retention_days: 90 });
    expect(own_free.accounts_using).toBeGreaterThan(2);
    expect(own_free.limits).toContainEqual({ name: 'max_accounts', value: 1 });
    expect(own_pro.limits).toContainEqual({ name: 'max_accounts', value: 3 });
    expect(own_free.features.some(({ enabled }: { enabled: boolean }) => enabled)).toBe(false);
    expect(own_pro.features.every(({ enabled }: { enabled: boolean }) => enabled)).toBe(true);

    const { json: seen } = await nobody.rest('GET', '/v1/plans');
    const [free, pro] = seen.data;
    expect(pro).toMatchObject({ slug: 'pro', max_storage_bytes: '2147483648', max_integrations: 2147483647 });
    expect(free).toMatchObject({
      slug: 'free',
      price_monthly: '0',
      price_yearly: '0',
      max_overlays: 3,
      max_storage_bytes: '104857600',
      max_upload_size_bytes: '5242880',
    });
    expect(Object.keys(free)).not.toContain('stripe_product_id');
    const keys = free.features.map(({ feature_key }: { feature_key: string }) => feature_key.split(':')[0]);
    expect(new Set(keys)).toEqual(new Set(['widget', 'feature', 'integration', 'bot_module']));
  });

  test('are created, read, edited but for their slug, and deleted, on both protocols', async () => {
    const made = await make('studio', {
      description: ' ',
      stripe_product_id: 'prod_1',
      limits: [{ name: 'max_sounds', value: 9 }],
    });
    expect(made).toMatchObject({
      ...body,
      currency: 'USD',
      description: null,
      stripe_product_id: 'prod_1',
      accounts_using: 0,
    });
    expect(made.limits).toContainEqual({ name: 'max_sounds', value: 9 });
    const at = `/v1/admin/plans/${made.id}`;
    expect((await operator.rest('GET', at)).json.data).toEqual(made);

    const { json: edited } = await operator.rest('PATCH', at, { body: { ...edit, name: 'Big', price_yearly: 1 } });
    expect(edited.data).toEqual({ ...made, name: 'Big', price_yearly: 1, currency: 'EUR' });
    expect((await operator.rest('PATCH', at, { body: { ...edit, slug: 'other' } })).json.error).toBe(
      'VALIDATION_ERROR',
    );
    expect((await operator.rest('PATCH', at, { body: { ...edit, currency: undefined } })).status).toBe(400);
    expect((await operator.rest('GET', at)).json.data).toEqual(edited.data);

    const { json: gql } = await operator.gql(
      `mutation ($input: AdminCreatePlanInput!) { adminCreatePlan(input: $input) {
         id priceMonthly maxStorageBytes currency limits { name value } features { featureKey enabled } accountsUsing } }`,
      {
        variables: {
          input: {
            ...{ slug: 'twin', name: 'Twin', priceMonthly: 1, priceYearly: 2, isPublic: false, sortOrder: 9 },
            ...{ maxOverlays: 1, maxStorageBytes: 5_000_000_000, maxUploadSizeBytes: 1, maxIntegrations: 1 },
            chatRetentionDays: 1,
          },
        },
      },
    );
    const twin = gql.data.adminCreatePlan;
    expect(twin).toMatchObject({ priceMonthly: 1, maxStorageBytes: 5_000_000_000, currency: 'USD', accountsUsing: 0 });
    const deleted = await operator.gql(`mutation { adminDeletePlan(id: "${twin.id}") }`);
    expect(deleted.json).toEqual({ data: { adminDeletePlan: true } });
    expect((await operator.rest('DELETE', at)).status).toBe(204);
    for (const id of [made.id, twin.id])
      expect((await operator.rest('GET', `/v1/admin/plans/${id}`)).json).toEqual({
        error: 'NOT_FOUND',
        message: 'Plan not found',
      });
    // What was given back may be taken again, by one of many.
    const all = await Promise.all(Array.from({ length: 5 }, () => operator.rest('POST', '/v1/admin/plans', { body })));
    const statuses = all.map(({ status }) => status).sort();
    expect(statuses).toEqual([201, 409, 409, 409, 409]);
    const again = all.find(({ status }) => status === 201)!.json.data;
    expect((await operator.rest('DELETE', `/v1/admin/plans/${again.id}`)).status).toBe(204);
  });

  test.each([
    [{ slug: 'Studio' }, 400, 'VALIDATION_ERROR', 'Invalid slug format'],
    [{ slug: 's' }, 400, 'VALIDATION_ERROR', 'Invalid slug format'],
    [{ slug: 's'.repeat(41) }, 400, 'VALIDATION_ERROR', 'Invalid slug format'],
    [{ price_monthly: -1 }, 400, 'VALIDATION_ERROR', 'Price cannot be negative'],
    [{ price_yearly: -1 }, 400, 'VALIDATION_ERROR', 'Price cannot be negative'],
    [{ max_overlays: -1 }, 400, 'VALIDATION_ERROR', 'Limit cannot be negative'],
    [{ max_storage_bytes: -1 }, 400, 'VALIDATION_ERROR', 'Limit cannot be negative'],
    [{ max_upload_size_bytes: -1 }, 400, 'VALIDATION_ERROR', 'Limit cannot be negative'],
    [{ max_integrations: -1 }, 400, 'VALIDATION_ERROR', 'Limit cannot be negative'],
    [{ chat_retention_days: -1 }, 400, 'VALIDATION_ERROR', 'Limit cannot be negative'],
    [{ limits: [{ name: 'max_accounts', value: -1 }] }, 400, 'VALIDATION_ERROR', 'Limit cannot be negative'],
    [{ limits: [{ name: 'max_wishes', value: 1 }] }, 400, 'VALIDATION_ERROR', 'Unknown limit: max_wishes'],
    [{ name: ' ' }, 400, 'VALIDATION_ERROR', 'Name is required'],
    [{ slug: 'free' }, 409, 'CONFLICT', 'Plan slug already in use'],
  ])('%j is answered %i %s %s, on both protocols', async (wrong, status, error, message) => {
    const asked = { ...body, ...wrong };
    const rest = await operator.rest('POST', '/v1/admin/plans', { body: asked });
    expect([rest.status, rest.json.error, rest.json.message]).toEqual([status, error, message]);
    const input = Object.fromEntries(
      Object.entries(asked).map(([name, value]) => [
        name.replace(/_(\w)/g, (_all, c: string) => c.toUpperCase()),
        value,
      ]),
    );
    const { json } = await operator.gql(
      'mutation ($input: AdminCreatePlanInput!) { adminCreatePlan(input: $input) { id } }',
      { variables: { input } },
    );
    expect([json.errors[0].extensions.code, json.errors[0].message]).toEqual([error, message]);
  });

  test.each([
    ['GET', '/v1/admin/plans', 'plans:read'],
    ['GET', `/v1/admin/plans/${uuid(1)}`, 'plans:read'],
    ['POST', '/v1/admin/plans', 'plans:create'],
    ['PATCH', `/v1/admin/plans/${uuid(1)}`, 'plans:edit'],
    ['PUT', `/v1/admin/plans/${uuid(1)}/features`, 'plans:edit'],
    ['DELETE', `/v1/admin/plans/${uuid(1)}`, 'plans:delete'],
  ])('%s %s asks for %s', async (method, path, permission) => {
    const sent = method === 'GET' ? {} : { body: {} };
    expect((await stranger.rest(method, path, sent)).json).toEqual({
      error: 'FORBIDDEN',
      message: `Missing permission: ${permission}`,
    });
    expect((await nobody.rest(method, path, sent)).status).toBe(401);
  });

  test('the free plan stays, and so does one that accounts are on, until they leave or are dissolved', async () => {
    const made = await make('crowded');
    const at = `/v1/admin/plans/${made.id}`;
    const ada = await newcomer('Ada live');
    const bob = await newcomer('Bob live');
    for (const { account_id } of [ada, bob]) await server.operator.setPlan(account_id, 'crowded');
    expect((await operator.rest('GET', at)).json.data.accounts_using).toBe(2);
    const refused = (accounts: number) => ({
      error: 'CONFLICT',
      message: `Cannot delete plan: ${accounts} account(s) still reference it. Migrate them to a different plan first.`,
    });
    expect((await operator.rest('DELETE', at)).json).toEqual(refused(2));
    await server.operator.setPlan(ada.account_id, 'free');
    expect((await operator.rest('DELETE', at)).json).toEqual(refused(1));
    const end = await bob.door.rest('DELETE', `/v1/accounts/${bob.account_id}`, { body: { confirm_name: 'Bob live' } });
    expect(end.status).toBe(200);
    expect((await operator.rest('DELETE', at)).status).toBe(204);
    await expect(server.operator.setPlan(ada.account_id, 'crowded')).rejects.toThrow('there is no plan crowded');

    const free = await operator.rest('DELETE', `/v1/admin/plans/${FREE_PLAN_ID}`);
    expect([free.status, free.json.error]).toEqual([409, 'CONFLICT']);
  });

  test('what a plan gives holds for all its accounts at once, and channels end with it', async () => {
    const made = await make('giving');
    const { account_id, access_token, door: bea } = await newcomer('Bea live');
    await server.operator.setPlan(account_id, 'giving');
    const events = async () => (await bea.rest('GET', '/v1/events')).status;
    const give = (...features: object[]) =>
      operator.rest('PUT', `/v1/admin/plans/${made.id}/features`, { body: { features } });
    const reasons = async () => {
      const { json } = await bea.rest('GET', `/v1/accounts/${account_id}/feature-statuses`);
      return Object.fromEntries(json.data.map(({ key, reason }: { key: string; reason: string }) => [key, reason]));
    };
    expect(await events()).toBe(403);
    expect((await reasons())['feature:events']).toBe('plan_locked');

    const { id: feature_id } = PLAN_FLAGS.find(({ key }) => key === 'feature:sounds')!;
    const given = await give({ feature_key: 'feature:events', enabled: true }, { feature_id, enabled: true });
    const on = (list: { feature_key: string; enabled: boolean }[]) =>
      list.filter(({ enabled }) => enabled).map(({ feature_key }) => feature_key);
    expect(on(given.json.data.features)).toEqual(['feature:sounds', 'feature:events']);
    expect(await events()).toBe(200);
    expect(await reasons()).toMatchObject({ 'feature:events': null, 'feature:sounds': null });

    const socket = await Client.open(server.ws_url, access_token);
    expect(await socket.subscribe(`events:${account_id}`)).toMatchObject({ type: 'subscribed' });
    expect(on((await give({ feature_id, enabled: true })).json.data.features)).toEqual(['feature:sounds']);
    expect(await events()).toBe(403);
    expect(await socket.next(({ type }) => type === 'error', 'the end')).toMatchObject({ code: 'FEATURE_DISABLED' });
    socket.end();

    expect(await server.operator.setPlanFeatures('giving', { 'feature:events': true })).toEqual([
      'feature:events',
      'feature:sounds',
    ]);
    await eventually(async () => ((await events()) === 200 ? true : undefined), 'the feature');
    for (const odd of [{ feature_key: 'system:ideas_hub' }, { feature_key: 'feature:none' }, {}])
      expect((await give({ ...odd, enabled: true })).json.error).toBe('VALIDATION_ERROR');
    expect((await operator.rest('PUT', `/v1/admin/plans/${uuid(1)}/features`, { body: { features: [] } })).status).toBe(
      404,
    );
  });
});
