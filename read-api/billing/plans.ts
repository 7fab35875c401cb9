import { z } from 'zod';
import { adminPermission, get, notFound, publicAccess, query, whole } from '../../app/operation';
import { AdminPlan, adminPlans as plansOf, BillingPlan, publicPlans } from '../../views/billing/plans';

/** Source: spec doc2 §2.8, §4.3. */
export const plans = query({
  name: 'plans',
  summary: 'The plans that are offered to everybody, in their order',
  rest: get('/v1/plans'),
  pages: whole(),
  guard: [publicAccess],
  input: z.object({}),
  output: BillingPlan,
  run: (_request, { db }) => publicPlans(db),
});

/** Source: spec doc2 §4.3. */
export const adminPlans = query({
  name: 'adminPlans',
  summary: 'Every plan, with how many accounts are on it',
  rest: get('/v1/admin/plans'),
  pages: whole(),
  guard: [adminPermission('plans:read')],
  input: z.object({}),
  output: AdminPlan,
  run: (_request, { db }) => plansOf(db),
});

export const adminPlan = query({
  name: 'adminPlan',
  summary: 'One plan, with how many accounts are on it',
  rest: get('/v1/admin/plans/{id}'),
  guard: [adminPermission('plans:read')],
  input: z.object({ id: z.uuid() }),
  output: AdminPlan,
  errors: { PLAN_NOT_FOUND: notFound('Plan not found') },
  async run({ input: { id }, refuse }, { db }) {
    const [plan] = await plansOf(db, id);
    if (!plan) throw refuse('PLAN_NOT_FOUND');
    return plan;
  },
});
