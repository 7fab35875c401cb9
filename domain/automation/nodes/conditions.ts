import { z } from 'zod';
import { PLATFORMS } from '../../common/vendors';
import { BOT_ROLES } from '../bot-roles';
import { comparison } from './comparisons';
import { condition } from './node-type';

const comparisons = z.array(comparison).min(1).max(20);
const platforms = z.array(z.enum(PLATFORMS)).min(1).max(4);
export const COOLDOWN_SCOPES = ['global', 'user'] as const;

export const compare = condition('compare', { summary: 'Compares two values.', config: comparison.shape });
export const all = condition('all', { summary: 'All comparisons hold.', config: { conditions: comparisons } });
export const any = condition('any', { summary: 'A comparison holds.', config: { conditions: comparisons } });
export const not = condition('not', { summary: 'The comparison does not hold.', config: { condition: comparison } });
export const cooldown = condition('cooldown', {
  summary: 'The node was not true within these seconds, for all or for the person of the cause.',
  config: { seconds: z.int().min(1).max(604_800), scope: z.enum(COOLDOWN_SCOPES) },
});
export const chance = condition('chance', {
  summary: 'True in this many of a hundred cases.',
  config: { percent: z.number().min(0).max(100) },
});
export const role = condition('role', {
  summary: 'The author of the cause has this role or a stronger one.',
  config: { min_role: z.enum(BOT_ROLES) },
});
export const platform = condition('platform', {
  summary: 'The cause is of one of these platforms.',
  config: { platforms },
});
export const live = condition('live', {
  summary: 'A channel of the account is on air, on one of these platforms.',
  config: { platforms: platforms.optional() },
});
