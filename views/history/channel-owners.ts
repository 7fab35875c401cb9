import { FREE_PLAN_ID } from '../../domain/billing/plan-limits';
import { isPlanFlag } from '../../domain/operators/feature-flags';

/** SQL: true where the flag is enabled for the account. `account` is an expression. */
const featureEnabled = (flag: string, account: string): string => {
  const override = `(select f.enabled from account_feature_overrides f where f.account_id = ${account}
    and f.flag = '${flag}')`;
  const plan = `(select p.enabled from plan_features p where p.flag = '${flag}' and p.plan_id = coalesce(
    (select a.plan_id from account_plans a where a.account_id = ${account}), '${FREE_PLAN_ID}'))`;
  const is_locked = isPlanFlag(flag) ? `and (coalesce(${plan}, false) or coalesce(${override}, false))` : '';
  return `(not exists (select from feature_flags f where f.key = '${flag}' and not f.enabled)
    and coalesce(${override}, true) ${is_locked})`;
};

/**
 * SQL: an operator closed the channel of the row `of` after the last change by an account. Reads false once an account
 * has changed it.
 */
export const closedByOperator = (of: string): string => `exists (
  select from crawler_opt_outs x
  where x.platform = ${of}.platform and (x.channel = ${of}.platform_channel_id or exists (
      select from opted_out_handles h where h.platform = x.platform and h.channel = x.channel
        and h.platform_channel_id = ${of}.platform_channel_id))
    and not exists (
    select from public_channels p where p.platform = ${of}.platform
      and p.platform_channel_id = ${of}.platform_channel_id and p.updated_at > x.opted_out_at))`;

/**
 * SQL: true where nobody may see the channel of the row `of`: an account or an operator has closed it, or no account
 * with the feature has it connected, so that nobody could close it.
 */
export const channelClosed = (of: string): string => `(exists (
  select from public_channels p
  where p.platform = ${of}.platform and p.platform_channel_id = ${of}.platform_channel_id and not p.is_public)
  or ${closedByOperator(of)}
  or not exists (select from channel_connections n
  where n.platform = ${of}.platform and n.platform_channel_id = ${of}.platform_channel_id
    and ${featureEnabled('feature:public_stats_page', 'n.account_id')}))`;
