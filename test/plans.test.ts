import { handle } from '../access/handle';
import { accountAllowance, limitOf } from '../access/plan-limits';
import { changePlan } from '../access/plans';
import type { Services } from '../access/services';
import { load } from '../access/states';
import { asOperator } from '../cli/admin/operator';
import { account, accountStream } from '../domain/accounts';
import { FREE_PLAN_ID, PLAN_LIMITS, PRO_PLAN_ID, SEEDED_LIMITS } from '../domain/plan-limits';
import { plan, planStream, SEEDED_PLANS, seedOf, type Offer, type PlanEvent } from '../domain/plans';
import { userOverrides, userOverrideStream } from '../domain/user-overrides';
import type { EventProjection } from '../kernel/projection';
import { seedPlans } from '../maintenance/plan-seeds';
import { accounts } from '../projections/accounts';
import { plans as plansModel } from '../projections/plans';
import { userOverrides as userOverridesModel } from '../projections/user-overrides';
import { testDatabase, type TestDatabase } from './support/database';
import { decider } from './support/decider';
import { uuid } from './support/identity';
import { engines, type Engines } from './support/projections';

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
  type Needs = Pick<Services, 'db' | 'events' | 'commit' | 'settle'>;
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
      settle: async () => undefined,
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
