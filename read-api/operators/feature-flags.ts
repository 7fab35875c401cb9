import { z } from 'zod';
import { enabledOf, featureStatuses, globallyEnabled } from '../../access/authorization/features';
import { adminFeatureFlags as flagsOf, FeatureFlag, FeatureStatus } from '../../views/operators/feature-flags';
import {
  activeAccount,
  adminPermission,
  authenticated,
  badRequest,
  get,
  notFound,
  publicAccess,
  query,
  whole,
} from '../../app/operation';

/** Source: spec doc2 §4.2. */
export const accountEnabledFeatures = query({
  name: 'accountEnabledFeatures',
  summary: 'Keys of the features that the account has',
  rest: get('/v1/accounts/{id}/enabled-features'),
  guard: [activeAccount('id')],
  input: z.object({ id: z.uuid() }),
  output: z.array(z.string()),
  run: async ({ caller: { account_id } }, { db }) => enabledOf(await featureStatuses(db, account_id)),
});

/** Source: spec doc2 §4.2. */
export const accountFeatureStatuses = query({
  name: 'accountFeatureStatuses',
  summary: 'Every feature of the account, and why it is off where it is',
  rest: get('/v1/accounts/{id}/feature-statuses'),
  guard: [activeAccount('id')],
  input: z.object({ id: z.uuid() }),
  output: z.array(FeatureStatus),
  run: ({ caller: { account_id } }, { db }) => featureStatuses(db, account_id),
});

const AccountFeatures = z
  .object({ enabled_features: z.array(z.string()), feature_statuses: z.array(FeatureStatus) })
  .meta({ id: 'AccountFeatures' });

/** Returns both at once for GraphQL; REST has a path for each. Source: spec doc2 §4.3. */
export const accountFeatures = query({
  name: 'accountFeatures',
  summary: 'Features of the active account; none without one',
  rest: null,
  guard: [authenticated],
  input: z.object({}),
  output: AccountFeatures,
  errors: { NO_ACCOUNT: badRequest('An account is required: send its id in the X-Lumio-Account header') },
  async run({ caller: { kind, account_id }, refuse }, { db }) {
    // A system key has no active account, so it must name one.
    if (kind === 'system_key' && account_id === null) throw refuse('NO_ACCOUNT');
    const feature_statuses = account_id === null ? [] : await featureStatuses(db, account_id);
    return { enabled_features: enabledOf(feature_statuses), feature_statuses };
  },
});

/** Source: spec doc2 §4.1 "Public flag reads". */
export const enabledFeatures = query({
  name: 'enabledFeatures',
  summary: 'Keys of the features that are not switched off for everybody',
  rest: get('/v1/features/enabled'),
  guard: [publicAccess],
  input: z.object({}),
  output: z.array(z.string()),
  run: (_request, { db }) => globallyEnabled(db),
});

/** Source: spec rulings "paths left open", extra-facts §26. */
export const adminFeatureFlags = query({
  name: 'adminFeatureFlags',
  summary: 'Every feature with its global switch, by category',
  rest: get('/v1/admin/feature-flags'),
  pages: whole(),
  guard: [adminPermission('feature-flags:read')],
  input: z.object({
    category: FeatureFlag.shape.category.nullish(),
    search: z.string().max(100).nullish().describe('Part of a key or label, in whatever case'),
  }),
  output: FeatureFlag,
  async run({ input: { category, search } }, { db }) {
    const wanted = search?.trim().toLowerCase() ?? '';
    return (await flagsOf(db)).filter(
      (flag) =>
        (!category || flag.category === category) && `${flag.key}\n${flag.label.toLowerCase()}`.includes(wanted),
    );
  },
});

export const adminFeatureFlag = query({
  name: 'adminFeatureFlag',
  summary: 'One feature with its global switch',
  rest: get('/v1/admin/feature-flags/{id}'),
  guard: [adminPermission('feature-flags:read')],
  input: z.object({ id: z.uuid() }),
  output: FeatureFlag,
  errors: { FLAG_NOT_FOUND: notFound('Feature flag not found') },
  async run({ input: { id }, refuse }, { db }) {
    const flag = (await flagsOf(db)).find((one) => one.id === id.toLowerCase());
    if (!flag) throw refuse('FLAG_NOT_FOUND');
    return flag;
  },
});
