import { z } from 'zod';
import { FeatureFlag, adminFeatureFlags } from '../../views/operators/feature-flags';
import { adminPermission, command, notFound, patch } from '../../app/operation';
import { featureFlag, featureFlagStream, KNOWN_FLAGS } from '../../domain/operators/feature-flags';

/** Switches a flag for everybody, on every node at once. Source: spec rulings "paths left open", extra-facts §26. */
export const adminUpdateFeatureFlag = command({
  name: 'adminUpdateFeatureFlag',
  summary: 'Turns a feature off for everybody, or on again',
  rest: patch('/v1/admin/feature-flags/{id}'),
  guard: [adminPermission('feature-flags:edit')],
  input: z.object({ id: z.uuid(), enabled: z.boolean() }),
  output: FeatureFlag,
  errors: { FLAG_NOT_FOUND: notFound('Feature flag not found') },
  async run({ input: { id, enabled }, act, refuse }, { db, access }) {
    const known = KNOWN_FLAGS.find((flag) => flag.id === id.toLowerCase());
    if (!known) throw refuse('FLAG_NOT_FOUND');
    await act(featureFlag, featureFlagStream(known.key), { type: 'feature_flag:switch', flag: known.key, enabled });
    await access.announce({});
    const [flag] = (await adminFeatureFlags(db)).filter(({ key }) => key === known.key);
    return { ...flag!, enabled };
  },
});
