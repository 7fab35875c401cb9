import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { PLAN_EVENTS } from '../../domain/billing/plans';
import { sql } from '../../kernel/sql';
import { all, eventProjection, noEffect, lastPer, pick } from '../runtime/drive/handlers';

const OFFER = sql`name, description, price_monthly, price_yearly, currency, is_public, sort_order, limits,
  stripe_product_id, stripe_monthly_price_id, stripe_yearly_price_id`;

/** Plans with their features, the plan of each account, and its own limits. A deleted plan leaves no row. */
export const plans = eventProjection({
  name: 'plans',
  version: 2,
  tables: ['plans', 'plan_features', 'account_plans', 'account_limit_overrides'],
  rights: true,
  events: [
    PLAN_EVENTS,
    pick(ACCOUNT_EVENTS, 'account:plan_changed', 'account:limit_override_set', 'account:dissolved'),
  ],
  on: {
    'plan:created': all(sql`
      insert into plans (id, slug, created_at, ${OFFER})
      select plan_id, slug, created_at, ${OFFER} from e on conflict (id) do nothing`),
    'plan:edited': lastPer(
      ['plan_id'],
      sql`
      update plans p set (${OFFER}) = (select ${OFFER} from e as edited where edited.plan_id = p.id)
      from e where e.plan_id = p.id`,
    ),
    'plan:features_set': sql`
      insert into plan_features (plan_id, flag, enabled)
      select distinct on (plan_id, f.flag) plan_id, f.flag, f.enabled
      from e, jsonb_to_recordset(features) as f (flag text, enabled boolean)
      on conflict (plan_id, flag) do update set enabled = excluded.enabled`,
    'plan:account_joined': noEffect,
    'plan:account_left': noEffect,
    'plan:deleted': all(
      sql`delete from plan_features f using e where f.plan_id = e.plan_id`,
      sql`delete from plans p using e where p.id = e.plan_id`,
    ),
    'account:plan_changed': lastPer(
      ['account_id'],
      sql`
      insert into account_plans (account_id, plan_id, changed_at) select account_id, plan_id, changed_at from e
      on conflict (account_id) do update set plan_id = excluded.plan_id, changed_at = excluded.changed_at`,
    ),
    'account:limit_override_set': lastPer(
      ['account_id', 'name'],
      sql`
      delete from account_limit_overrides o using e
      where o.account_id = e.account_id and o.name = e.name and e.value is null`,
      sql`
      insert into account_limit_overrides (account_id, name, value, set_at)
      select account_id, name, value, set_at from e where value is not null
      on conflict (account_id, name) do update set value = excluded.value, set_at = excluded.set_at`,
    ),
    'account:dissolved': all(
      sql`delete from account_plans o using e where o.account_id = e.account_id`,
      sql`delete from account_limit_overrides o using e where o.account_id = e.account_id`,
    ),
  },
  revokes: {
    // Concerns all accounts on the plan.
    'plan:features_set': () => ({}),
    'account:plan_changed': ({ account_id }) => ({ account_id }),
  },
});
