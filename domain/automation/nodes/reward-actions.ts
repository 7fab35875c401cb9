import { v5 } from 'uuid';
import type { Graph } from '../automation-graphs';
import { onEvent } from './triggers';

/** Type of the events that redemptions are stored as. */
export const REDEMPTION = 'twitch:reward';

/** The action that a redemption of a reward carries out. */
export interface RewardAction {
  type: string;
  config: Record<string, unknown>;
}

/** The graph of a reward's runs: a redemption, and the action after it. */
export function rewardGraph(action_id: string, trigger_id: string, { type, config }: RewardAction): Graph {
  return {
    nodes: [
      { id: trigger_id, type: onEvent.type, config: { event_types: [REDEMPTION] } },
      { id: action_id, type, config },
    ],
    edges: [{ from: trigger_id, to: action_id, output: 'next' }],
  };
}

/** The graph of a stored reward; its action has the reward's id. */
export const graphOfReward = (reward_id: string, action: RewardAction): Graph =>
  rewardGraph(reward_id, v5('trigger', reward_id), action);
