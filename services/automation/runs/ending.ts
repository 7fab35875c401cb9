import type { Queryable } from '../../../engines/postgres/port';
import { type FollowUps, finishRuns, promote } from './progress';
import { lockAccount } from './rows';

/** Runs of an automation or a reward, or all of an account. */
interface Ending {
  account_id: string;
  automation_id: string | null;
  reward_id: string | null;
  before: string;
}

/** Ends open runs that began before a time, and those whose automation or reward is not enabled now. */
export async function endRuns(
  tx: Queryable,
  { account_id, automation_id, reward_id, before }: Ending,
  then: FollowUps,
): Promise<void> {
  await lockAccount(tx, account_id);
  await finishRuns(
    tx,
    `r.account_id = $1 and ($2::uuid is null or r.automation_id = $2) and ($3::uuid is null or r.reward_id = $3)
       and (r.created_at <= $4
         or not exists (select from automations a where a.id = r.automation_id and a.enabled)
           and not exists (select from rewards w where w.id = r.reward_id and w.enabled))`,
    [account_id, automation_id, reward_id, before],
    { status: 'cancelled', error: null },
    then,
  );
  await promote(tx, account_id, then);
}
