import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { REWARD_EVENTS } from '../../domain/automation/rewards';
import { sql } from '../../kernel/sql';
import { all, each, eventProjection, pick } from '../runtime/drive/handlers';

/** Rewards of accounts. */
export const rewards = eventProjection({
  name: 'rewards',
  version: 2,
  tables: ['rewards'],
  events: [REWARD_EVENTS, pick(ACCOUNT_EVENTS, 'account:dissolved')],
  on: {
    'reward:created': all(sql`
      insert into rewards
        (id, account_id, platform, platform_reward_id, title, cost, enabled, action, created_at, updated_at)
      select reward_id, account_id, platform, platform_reward_id, title, cost, enabled, action::json, created_at,
        created_at
      from e on conflict (id) do nothing`),
    'reward:updated': each(
      ['reward_id'],
      sql`
      update rewards r set title = e.title, cost = e.cost, enabled = e.enabled, action = e.action::json,
        updated_at = e.updated_at
      from e where r.id = e.reward_id`,
    ),
    'reward:deleted': all(sql`delete from rewards r using e where r.id = e.reward_id`),
    'account:dissolved': all(sql`delete from rewards r using e where r.account_id = e.account_id`),
  },
});
