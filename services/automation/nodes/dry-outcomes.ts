import * as conditions from '../../../domain/automation/nodes/conditions';
import * as deciding from './conditions';
import { decided, done, failed, type Outcome, type StepTools, type StepWork } from './executor';
import { EXECUTORS } from './executors';

const CONDITIONS: ReadonlyMap<string, deciding.Condition> = new Map([
  [conditions.compare.type, deciding.compare],
  [conditions.all.type, deciding.all],
  [conditions.any.type, deciding.any],
  [conditions.not.type, deciding.not],
  [conditions.chance.type, deciding.chance],
  [conditions.role.type, deciding.role],
  [conditions.platform.type, deciding.platform],
  [conditions.live.type, deciding.live],
  [conditions.cooldown.type, { ...deciding.cooldown, run: isFree }],
]);

/** Whether a cooldown is over; it is not taken. */
async function isFree(
  { automation_id, node_id, cause }: StepWork,
  { seconds, scope }: Record<string, unknown>,
  { db }: Pick<StepTools, 'db'>,
): Promise<Outcome> {
  const rows = await db.query(
    `select 1 as one from automation_cooldowns where automation_id = $1 and node_id = $2 and person = $3
       and used_at + make_interval(secs => $4) > clock_timestamp()`,
    [automation_id, node_id, scope === 'user' ? (cause.person ?? '') : '', seconds],
    'automation-cooldown',
  );
  return decided(rows.length === 0);
}

/** Outcome of a step that changes and sends nothing: conditions decide, actions count as done. */
export async function dryOutcome(
  type: string,
  work: StepWork,
  input: Record<string, unknown>,
  db: StepTools['db'],
): Promise<Outcome> {
  const condition = CONDITIONS.get(type);
  if (condition !== undefined) return condition.run(work, input, { db });
  return EXECUTORS.has(type) ? done : failed('not_available');
}
