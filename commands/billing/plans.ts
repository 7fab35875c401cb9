import { z } from 'zod';
import { adminPermission, command, conflict, del, invalid, notFound, patch, post, put } from '../../app/operation';
import { accountsUsing, AdminPlan, toPlanView } from '../../views/billing/plans';
import { PLAN_FLAGS } from '../../domain/operators/feature-flags';
import { isPlanLimit, NAMED_LIMITS, OTHER_LIMITS, UNBOUNDED } from '../../domain/billing/plan-limits';
import { plan, type Plan, PLAN_SLUG, PLAN_SLUG_LENGTH, planStream, slugReservations } from '../../domain/billing/plans';
import type { Queryable } from '../../engines/postgres/port';

const SLUG = 'Invalid slug format';
const price = z.int().min(0, 'Price cannot be negative').max(UNBOUNDED, 'Price is too large');
const limit = (most: number) => z.int().min(0, 'Limit cannot be negative').max(most, 'Limit is too large');
const bytes = limit(Number.MAX_SAFE_INTEGER);
const freeText = (most: number) =>
  z
    .string()
    .trim()
    .max(most)
    .transform((text) => text || null)
    .nullish();
/** Id at the payment provider, which is never called. */
const external = freeText(255);

const offer = {
  name: z.string().trim().min(1, 'Name is required').max(100, 'Name must be 100 characters or less'),
  description: freeText(1000).describe('Null clears it, left out it stays'),
  price_monthly: price.describe('In the smallest unit of the currency'),
  price_yearly: price,
  is_public: z.boolean(),
  sort_order: z.int().min(-UNBOUNDED).max(UNBOUNDED),
  max_overlays: limit(UNBOUNDED),
  max_storage_bytes: bytes,
  max_upload_size_bytes: bytes,
  max_integrations: limit(UNBOUNDED),
  chat_retention_days: limit(UNBOUNDED).describe('0 keeps everything'),
  limits: z
    .array(
      z
        .object({
          name: z.string().meta({ enum: [...OTHER_LIMITS] }),
          value: bytes.nullish().describe('Null: the default'),
        })
        .meta({ id: 'PlanLimitInput' }),
    )
    .max(OTHER_LIMITS.length)
    .nullish()
    .describe('Limits beyond the five; one that is not named stays as it is'),
  stripe_product_id: external,
  stripe_monthly_price_id: external,
  stripe_yearly_price_id: external,
};
const currency = z
  .string()
  .trim()
  .regex(/^[A-Za-z]{3}$/, 'Currency must be a code of three letters')
  .transform((code) => code.toUpperCase());

const AdminCreatePlanInput = z
  .object({
    slug: z
      .string()
      .min(PLAN_SLUG_LENGTH.min, SLUG)
      .max(PLAN_SLUG_LENGTH.max, SLUG)
      .regex(PLAN_SLUG, SLUG)
      .describe('Never changes'),
    ...offer,
    currency: currency.nullish().describe('Default USD'),
  })
  .meta({ id: 'AdminCreatePlanInput' });

const AdminUpdatePlanInput = z.object({ id: z.uuid(), ...offer, currency }).meta({ id: 'AdminUpdatePlanInput' });
type Edit = Omit<z.output<typeof AdminUpdatePlanInput>, 'id' | 'currency'>;

const UNKNOWN_LIMIT = { UNKNOWN_LIMIT: invalid('Unknown limit: {name}') };
const PLAN_NOT_FOUND = { PLAN_NOT_FOUND: notFound('Plan not found') };

/** Limits of the input, from its own members and from its list. */
function limitsOf({ limits, ...input }: Edit): Record<string, number | null> {
  const others = (limits ?? []).map(({ name, value }): [string, number | null] => [name, value ?? null]);
  return { ...Object.fromEntries(others), ...Object.fromEntries(NAMED_LIMITS.map((name) => [name, input[name]])) };
}

/** Other members of the input; an absent one is undefined. */
const restOf = ({ limits: _limits, ...input }: Edit) => ({
  name: input.name,
  description: input.description,
  price_monthly: input.price_monthly,
  price_yearly: input.price_yearly,
  is_public: input.is_public,
  sort_order: input.sort_order,
  stripe_product_id: input.stripe_product_id,
  stripe_monthly_price_id: input.stripe_monthly_price_id,
  stripe_yearly_price_id: input.stripe_yearly_price_id,
});

/** Answer for a plan from its decided state, because the read model may be behind. */
async function shown(db: Queryable, { plan_id, slug, offer, features }: Plan): Promise<AdminPlan> {
  const row = { id: plan_id, slug, ...offer!, features: Object.fromEntries(features) };
  return toPlanView(row, await accountsUsing(db, plan_id));
}

/** Source: spec doc2 §4.3. */
export const adminCreatePlan = command({
  name: 'adminCreatePlan',
  summary: 'Creates a plan, which gives no features yet',
  rest: post('/v1/admin/plans', { status: 201, location: ({ id }: AdminPlan) => `/v1/admin/plans/${id}` }),
  graphql: { argument: 'input' },
  guard: [adminPermission('plans:create')],
  input: AdminCreatePlanInput,
  output: AdminPlan,
  errors: { TAKEN: conflict('Plan slug already in use'), INVALID_SLUG: invalid(SLUG), ...UNKNOWN_LIMIT },
  async run({ input, act, newId, refuse }, { db }) {
    const limits = limitsOf(input);
    const unknown = Object.keys(limits).find((name) => !isPlanLimit(name));
    if (unknown !== undefined) throw refuse('UNKNOWN_LIMIT', { name: unknown });
    const { description, stripe_product_id, stripe_monthly_price_id, stripe_yearly_price_id, ...rest } = restOf(input);
    const plan_id = newId('plan');
    const { state } = await act(
      plan,
      planStream(plan_id),
      {
        type: 'plan:create',
        plan_id,
        slug: input.slug,
        offer: {
          ...rest,
          currency: input.currency ?? 'USD',
          description: description ?? null,
          limits: Object.fromEntries(
            Object.entries(limits).flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
          ),
          stripe_product_id: stripe_product_id ?? null,
          stripe_monthly_price_id: stripe_monthly_price_id ?? null,
          stripe_yearly_price_id: stripe_yearly_price_id ?? null,
        },
      },
      { reservations: slugReservations },
    );
    return shown(db, state);
  },
});

/** Changes everything except the slug. Source: spec doc2 §4.3. */
export const adminUpdatePlan = command({
  name: 'adminUpdatePlan',
  summary: 'Changes a plan for every account on it; its slug stays',
  rest: patch('/v1/admin/plans/{id}'),
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [adminPermission('plans:edit')],
  input: AdminUpdatePlanInput,
  output: AdminPlan,
  errors: { ...PLAN_NOT_FOUND, ...UNKNOWN_LIMIT },
  async run({ input: { id, ...input }, act }, { db, access }) {
    const rest = { ...restOf(input), currency: input.currency };
    const edit = { type: 'plan:edit', offer: { ...rest, limits: limitsOf(input) } } as const;
    const { state } = await act(plan, planStream(id), edit);
    await access.announce({});
    return shown(db, state);
  },
});

const PlanFeatureInput = z
  .object({
    feature_id: z.uuid().nullish(),
    feature_key: z.string().max(100).nullish(),
    enabled: z.boolean(),
  })
  .meta({ id: 'AdminPlanFeatureInput' });

/** Source: spec rulings "paths left open". */
export const adminSetPlanFeatures = command({
  name: 'adminSetPlanFeatures',
  summary: 'Says which features a plan gives; those that are not named it does not give',
  rest: put('/v1/admin/plans/{id}/features'),
  guard: [adminPermission('plans:edit')],
  input: z.object({
    id: z.uuid(),
    features: z.array(PlanFeatureInput).max(500).describe('Each by its id or its key'),
  }),
  output: AdminPlan,
  errors: { ...PLAN_NOT_FOUND, UNKNOWN_FLAG: invalid('Unknown feature: {flag}') },
  async run({ input: { id, features }, act, refuse }, { db, access }) {
    const wanted = new Map(PLAN_FLAGS.map(({ key }): [string, boolean] => [key, false]));
    for (const { feature_id, feature_key, enabled } of features) {
      const flag = PLAN_FLAGS.find(
        (one) => (!feature_id || one.id === feature_id.toLowerCase()) && (!feature_key || one.key === feature_key),
      );
      if (!flag || (!feature_id && !feature_key))
        throw refuse('UNKNOWN_FLAG', { flag: feature_key ?? feature_id ?? '' });
      wanted.set(flag.key, enabled);
    }
    const set = { type: 'plan:set_features', features: Object.fromEntries(wanted) } as const;
    const { state } = await act(plan, planStream(id), set);
    await access.announce({});
    return shown(db, state);
  },
});

/** Deletes a plan with its features. Source: spec doc2 §3 row 17, §4.3. */
export const adminDeletePlan = command({
  name: 'adminDeletePlan',
  summary: 'Deletes a plan that no account is on; the free plan stays',
  rest: del('/v1/admin/plans/{id}'),
  guard: [adminPermission('plans:delete')],
  input: z.object({ id: z.uuid() }),
  output: z.boolean(),
  errors: {
    ...PLAN_NOT_FOUND,
    PLAN_IN_USE: conflict(
      'Cannot delete plan: {accounts} account(s) still reference it. Migrate them to a different plan first.',
    ),
    FREE_PLAN_STAYS: conflict('The free plan cannot be deleted: accounts without another plan are on it'),
  },
  async run({ input: { id }, act }) {
    await act(plan, planStream(id), { type: 'plan:delete' }, { reservations: slugReservations });
    return true;
  },
});
