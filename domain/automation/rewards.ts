import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { JsonObject } from '../../lib/json/json';
import { unreachable } from '../common/unreachable';
import { PLATFORMS } from '../common/vendors';

/** Rewards of an account. */
export const MAX_REWARDS = 1_000;

const ids = { reward_id: z.uuid(), account_id: z.uuid() };
const action = z.string().describe('JSON text of `{}`, or of `type` and `config`');
const changeable = { title: z.string(), cost: z.int32().nullable(), enabled: z.boolean(), action };
const made = { platform: z.enum(PLATFORMS), platform_reward_id: z.string().nullable(), ...changeable };

export const NO_ACTION = '{}';
const withAction = {
  version: 2,
  upcast: [(data: JsonObject) => ({ ...data, action: NO_ACTION })],
  audit: { omit: ['action'] },
};

/** Rewards of an account, in one stream of it: their number is bounded. Source: spec extra-facts §22. */
export const REWARD_EVENTS = events({
  'reward:created': event({ ...ids, ...made, created_at: instant() }, withAction),
  'reward:updated': event({ ...ids, ...changeable, updated_at: instant() }, withAction),
  'reward:deleted': event({ ...ids, deleted_at: instant() }),
});
export type RewardEvent = EventOf<typeof REWARD_EVENTS>;

export interface Reward extends z.output<z.ZodObject<typeof made>> {
  created_at: string;
  updated_at: string;
}
/** Rewards of an account by id. */
export type Rewards = ReadonlyMap<string, Reward>;
type Changes = { [Member in keyof typeof changeable]?: Reward[Member] | undefined };

export type RewardCommand = { account_id: string; reward_id: string; now: string } & (
  | ({ type: 'reward:create' } & z.output<z.ZodObject<typeof made>>)
  | { type: 'reward:update'; changes: Changes }
  | { type: 'reward:delete' }
);

/** Owner of the jobs of a reward's runs. */
export const rewardOwner = (reward_id: string): string => `reward:${reward_id}`;
export const rewardsStream = (account_id: string): string => `rewards-${account_id}`;

export const rewards: Decider<Rewards, RewardCommand, RewardEvent> = {
  initial: new Map(),
  decide(state, command) {
    const { account_id, reward_id, now } = command;
    const of = { reward_id, account_id };
    if (command.type === 'reward:create') {
      if (state.size >= MAX_REWARDS) throw new DomainError('TOO_MANY_REWARDS');
      const { type: _type, now: _now, ...reward } = command;
      return [{ type: 'reward:created', ...reward, created_at: now }];
    }
    const reward = state.get(reward_id);
    if (reward === undefined) throw new DomainError('REWARD_NOT_FOUND', { reward_id });
    switch (command.type) {
      case 'reward:update': {
        const before = { title: reward.title, cost: reward.cost, enabled: reward.enabled, action: reward.action };
        const given = Object.entries(command.changes).filter(([, value]) => value !== undefined);
        const after = { ...before, ...Object.fromEntries(given) };
        if (JSON.stringify(after) === JSON.stringify(before)) return [];
        return [{ type: 'reward:updated', ...of, ...after, updated_at: now }];
      }
      case 'reward:delete':
        return [{ type: 'reward:deleted', ...of, deleted_at: now }];
      default:
        return unreachable(command);
    }
  },
  evolve(state, event) {
    const next = new Map(state);
    switch (event.type) {
      case 'reward:created': {
        const { type: _type, account_id: _account, reward_id, ...reward } = event;
        return next.set(reward_id, { ...reward, updated_at: event.created_at });
      }
      case 'reward:updated': {
        const { type: _type, account_id: _account, reward_id, ...changed } = event;
        return next.set(reward_id, { ...next.get(reward_id)!, ...changed });
      }
      case 'reward:deleted':
        next.delete(event.reward_id);
        return next;
      default:
        return unreachable(event);
    }
  },
};
