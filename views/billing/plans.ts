import { z } from 'zod';
import { PLAN_FLAGS } from '../../domain/operators/feature-flags';
import {
  FREE_PLAN_ID,
  type Limits,
  OTHER_LIMITS,
  PLAN_LIMITS,
  type PlanLimit,
  UNBOUNDED,
} from '../../domain/billing/plan-limits';
import type { Offer } from '../../domain/billing/plans';
import type { Queryable } from '../../engines/postgres/port';

const int = z.int().max(UNBOUNDED);
/** Bytes of files exceed GraphQL's `Int`. Source: spec ruling c68. */
const bytes = z.int().max(Number.MAX_SAFE_INTEGER);

const PlanLimitValue = z
  .object({ name: z.string().meta({ enum: [...OTHER_LIMITS] }), value: bytes })
  .meta({ id: 'PlanLimit' });

const listed = { feature_id: z.uuid(), feature_key: z.string(), label: z.string(), enabled: z.boolean() };
const AdminPlanFeature = z.object(listed).meta({ id: 'AdminPlanFeature' });
const PlanFeature = z
  .object({ ...listed, globally_enabled: z.boolean().describe('Available where both are true') })
  .meta({ id: 'PlanFeature' });

const identity = { id: z.uuid(), slug: z.string(), name: z.string(), description: z.string().nullable() };

/** A plan as operators see it. Source: spec doc2 §2.8, ruling c67. */
export const AdminPlan = z
  .object({
    ...identity,
    price_monthly: int.describe('In the smallest unit of the currency'),
    price_yearly: int,
    currency: z.string(),
    is_public: z.boolean(),
    sort_order: int,
    max_overlays: int,
    max_storage_bytes: bytes,
    max_upload_size_bytes: bytes,
    max_integrations: int,
    chat_retention_days: int.describe('0 keeps everything'),
    limits: z.array(PlanLimitValue).describe('Limits beyond the five above'),
    stripe_product_id: z.string().nullable(),
    stripe_monthly_price_id: z.string().nullable(),
    stripe_yearly_price_id: z.string().nullable(),
    features: z.array(AdminPlanFeature),
    accounts_using: int,
  })
  .meta({ id: 'AdminPlan' });
export type AdminPlan = z.output<typeof AdminPlan>;

/** A plan as everybody sees it. Source: spec doc2 §2.8. */
export const BillingPlan = z
  .object({
    ...identity,
    price_monthly: z.string().describe('In the smallest unit of the currency'),
    price_yearly: z.string(),
    currency: z.string(),
    is_public: z.boolean(),
    sort_order: int,
    max_overlays: int,
    max_storage_bytes: z.string(),
    max_upload_size_bytes: z.string(),
    max_integrations: int,
    chat_retention_days: int.describe('0 keeps everything'),
    features: z.array(PlanFeature),
  })
  .meta({ id: 'BillingPlan' });

interface PlanRow extends Offer {
  id: string;
  slug: string;
  features: Readonly<Record<string, boolean>>;
}

const OFFER = `p.id, p.slug, p.name, p.description, p.price_monthly, p.price_yearly, p.currency, p.is_public, p.sort_order,
  p.limits, p.stripe_product_id, p.stripe_monthly_price_id, p.stripe_yearly_price_id,
  coalesce((select jsonb_object_agg(f.flag, f.enabled) from plan_features f where f.plan_id = p.id), '{}') as features`;

/** SQL: number of accounts on plan `p`. An account without a row is on the free plan. */
const USING = `case when p.id = '${FREE_PLAN_ID}'
    then (select count(*) from accounts a where not exists (
            select 1 from account_plans o where o.account_id = a.id and o.plan_id <> p.id))
    else (select count(*) from account_plans o where o.plan_id = p.id) end as accounts_using`;

/** All plans in their order, or one. */
export async function adminPlans(db: Queryable, id: string | null = null): Promise<AdminPlan[]> {
  const rows = await db.query<PlanRow & { accounts_using: number }>(
    `select ${OFFER}, ${USING} from plans p where $1::uuid is null or p.id = $1 order by p.sort_order, p.slug`,
    [id],
    'admin-plans',
  );
  return rows.map(({ accounts_using, ...row }) => toPlanView(row, accounts_using));
}

/** Number of accounts on a plan. */
export async function accountsUsing(db: Queryable, plan_id: string): Promise<number> {
  const [row] = await db.query<{ accounts_using: number }>(
    `select ${USING} from (select $1::uuid as id) p`,
    [plan_id],
    'plan-accounts',
  );
  return row!.accounts_using;
}

export function toPlanView({ limits, features, ...row }: PlanRow, accounts_using: number): AdminPlan {
  return {
    ...row,
    ...namedLimits(limits),
    limits: OTHER_LIMITS.map((name) => ({ name, value: valueOf(limits, name) })),
    features: PLAN_FLAGS.map((flag) => featureOf(flag, features)),
    accounts_using,
  };
}

/** The plans that are offered to everybody, in their order. Source: spec doc2 §4.3. */
export async function publicPlans(db: Queryable): Promise<z.input<typeof BillingPlan>[]> {
  const rows = await db.query<PlanRow & { off: readonly string[] }>(
    `select ${OFFER}, array(select key from feature_flags where not enabled) as off
     from plans p where p.is_public order by p.sort_order, p.slug`,
    [],
    'public-plans',
  );
  return rows.map(({ limits, features, off, price_monthly, price_yearly, ...row }) => {
    const { max_storage_bytes, max_upload_size_bytes, ...named } = namedLimits(limits);
    const { id, slug, name, description, currency, is_public, sort_order } = row;
    return {
      ...{ id, slug, name, description, currency, is_public, sort_order, ...named },
      price_monthly: String(price_monthly),
      price_yearly: String(price_yearly),
      max_storage_bytes: String(max_storage_bytes),
      max_upload_size_bytes: String(max_upload_size_bytes),
      features: PLAN_FLAGS.map((flag) => ({
        ...featureOf(flag, features),
        globally_enabled: !off.includes(flag.key),
      })),
    };
  });
}

const valueOf = (limits: Limits, name: PlanLimit): number => limits[name] ?? PLAN_LIMITS[name];

const namedLimits = (limits: Limits) => ({
  max_overlays: valueOf(limits, 'max_overlays'),
  max_storage_bytes: valueOf(limits, 'max_storage_bytes'),
  max_upload_size_bytes: valueOf(limits, 'max_upload_size_bytes'),
  max_integrations: valueOf(limits, 'max_integrations'),
  chat_retention_days: valueOf(limits, 'chat_retention_days'),
});

/** A flag that the plan does not name is off. Source: spec doc2 §2.8. */
const featureOf = ({ id, key, label }: (typeof PLAN_FLAGS)[number], features: PlanRow['features']) => ({
  feature_id: id,
  feature_key: key,
  label,
  enabled: features[key] ?? false,
});

/** Id of the plan with this slug; null without one. */
export async function planOfSlug(db: Queryable, slug: string): Promise<string | null> {
  const [row] = await db.query<{ id: string }>('select id from plans where slug = $1', [slug], 'plan-of-slug');
  return row?.id ?? null;
}

/** True for the slug of a public plan. */
export async function isPublicPlan(db: Queryable, slug: string): Promise<boolean> {
  const found = await db.query('select 1 from plans where slug = $1 and is_public', [slug], 'plan-public');
  return found.length > 0;
}
