import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';
import { unreachable } from '../common/unreachable';
import { PLATFORMS, type Platform } from '../common/vendors';

const of = { account_id: z.uuid(), token_id: z.uuid(), platform: z.enum(PLATFORMS) };
const OF_TOKEN = { audit: { target: ['se_token', 'token_id'] } } as const;

/**
 * Tokens of StreamElements, by which an account's tips are read: one for each platform. The token itself is a sealed
 * row (views/connections/se-tokens.ts). Source: spec extra-facts §22.
 */
export const SE_TOKEN_EVENTS = events({
  'se_token:saved': event({ ...of, label: z.string(), saved_at: instant() }, OF_TOKEN),
  'se_token:deleted': event({ ...of, deleted_at: instant() }, OF_TOKEN),
});
export type SeTokenEvent = EventOf<typeof SE_TOKEN_EVENTS>;

export type SeTokenCommand =
  | {
      type: 'se_token:save';
      account_id: string;
      token_id: string;
      platform: Platform;
      label: string;
      now: string;
    }
  | { type: 'se_token:delete'; account_id: string; token_id: string; now: string }
  /** The account is gone. */
  | { type: 'se_token:delete_all'; account_id: string; now: string };

/** Platform to the token's id. */
export type SeTokens = ReadonlyMap<Platform, string>;

export const seTokensStream = (account_id: string): string => `se-tokens-${account_id}`;

export const seTokens: Decider<SeTokens, SeTokenCommand, SeTokenEvent> = {
  initial: new Map(),
  decide(state, command) {
    const { account_id, now } = command;
    const deleted = (platform: Platform, token_id: string): SeTokenEvent => ({
      type: 'se_token:deleted',
      account_id,
      token_id,
      platform,
      deleted_at: now,
    });
    switch (command.type) {
      case 'se_token:save': {
        const { platform, label } = command;
        // A token that is there is replaced, and keeps its id.
        const token_id = state.get(platform) ?? command.token_id;
        return [{ type: 'se_token:saved', account_id, token_id, platform, label, saved_at: now }];
      }
      case 'se_token:delete': {
        const [platform] = [...state].find(([, id]) => id === command.token_id) ?? [];
        if (platform === undefined) throw new DomainError('SE_TOKEN_NOT_FOUND', { token_id: command.token_id });
        return [deleted(platform, command.token_id)];
      }
      case 'se_token:delete_all':
        return [...state].map(([platform, token_id]) => deleted(platform, token_id));
      default:
        return unreachable(command);
    }
  },
  evolve(state, event) {
    const next = new Map(state);
    if (event.type === 'se_token:saved') next.set(event.platform, event.token_id);
    else next.delete(event.platform);
    return next;
  },
};
