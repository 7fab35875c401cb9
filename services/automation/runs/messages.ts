import { automationsChannel } from '../../../domain/automation/automations';
import type { RunStatus } from '../../../domain/automation/automation-runs';
import type { ChannelMessage } from '../../../kernel/projection';
import type { RunRow } from './rows';

/** A message about a run, without values of persons. */
export function runMessage(
  type: 'run:started' | 'run:step' | 'run:finished',
  {
    id: run_id,
    account_id,
    automation_id,
    reward_id,
  }: Pick<RunRow, 'id' | 'account_id' | 'automation_id' | 'reward_id'>,
  status: RunStatus,
  node_id?: string,
): ChannelMessage {
  const of = reward_id === null ? { automation_id } : { reward_id };
  const data = { type, ...of, run_id, status, ...(node_id !== undefined && { node_id }) };
  return { channel: automationsChannel(account_id), event_type: type, data: JSON.stringify(data) };
}
