import { START_REWARD } from '../../../domain/automation/automation-runs';
import type { Graph } from '../../../domain/automation/automation-graphs';
import { graphOfReward, REDEMPTION, type RewardAction } from '../../../domain/automation/nodes/reward-actions';
import { type Queryable, textArray } from '../../../engines/postgres/port';
import type { LoggedRecord } from '../../../engines/records/port';
import type { JobRequest } from '../../../kernel/job';
import { memberAt, parsedJson } from '../../../lib/json/paths';
import { accountFlags } from '../account-flags';
import { eventStart } from './event-starts';

interface Redemption {
  record: LoggedRecord;
  account_id: string;
  platform_reward_id: string;
}

function redemptionOf(record: LoggedRecord): Redemption[] {
  if (record.type !== REDEMPTION) return [];
  const id = memberAt(parsedJson(record.raw), ['reward', 'id']);
  return typeof id === 'string'
    ? [{ record, account_id: record.account_id.toLowerCase(), platform_reward_id: id }]
    : [];
}

interface Found extends Record<string, unknown> {
  id: string;
  account_id: string;
  platform: string;
  platform_reward_id: string;
}

/** Enabled rewards with an action that these records redeem, of accounts with automations. */
export async function redeemedRewards(
  tx: Pick<Queryable, 'query'>,
  records: readonly LoggedRecord[],
): Promise<{ record: LoggedRecord; reward_id: string }[]> {
  const redemptions = records.flatMap(redemptionOf);
  if (redemptions.length === 0) return [];
  const rows = await tx.query<Found>(
    `select id, account_id, platform, platform_reward_id from rewards
     where account_id = any($1::text[]::uuid[]) and platform_reward_id = any($2::text[])
       and enabled and action::text <> '{}' order by created_at, id`,
    [
      textArray([...new Set(redemptions.map(({ account_id }) => account_id))]),
      textArray([...new Set(redemptions.map(({ platform_reward_id }) => platform_reward_id))]),
    ],
    'rewards-redeemed',
  );
  const isOn = await accountFlags(
    tx,
    rows.map(({ account_id }) => account_id),
    ['feature:automation'],
  );
  return redemptions.flatMap(({ record, account_id, platform_reward_id }) =>
    rows
      .filter((row) => row.account_id === account_id && row.platform_reward_id === platform_reward_id)
      .filter((row) => row.platform === record.platform && isOn('feature:automation', account_id))
      .map(({ id }) => ({ record, reward_id: id })),
  );
}

/** Starts the action of a reward by its redemption. */
export function rewardStart(record: LoggedRecord, reward_id: string): JobRequest {
  const payload = { ...eventStart(record, reward_id), reward_id };
  return { name: START_REWARD, key: payload.start_key, payload };
}

/** The graph of an enabled reward with an action; undefined of any other. */
export async function startableReward(
  db: Pick<Queryable, 'query'>,
  account_id: string,
  reward_id: string,
): Promise<Graph | undefined> {
  const [row] = await db.query<{ action: string }>(
    `select action::text as action from rewards
     where account_id = $1 and id = $2 and enabled and action::text <> '{}'`,
    [account_id, reward_id],
    'reward-startable',
  );
  return row === undefined ? undefined : graphOfReward(reward_id, JSON.parse(row.action) as RewardAction);
}
