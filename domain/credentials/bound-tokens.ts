import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { event, events, instant, type EventOf } from '../../kernel/event';

const ids = { token_id: z.uuid(), account_id: z.uuid() };
const KINDS = ['overlay', 'shared_overlay', 'extension', 'widget'] as const;

/**
 * Tokens for one overlay, widget or install that an operator made or revoked, for the audit log. The tokens are rows
 * (access/authentication/tokens/bound-tokens.ts). The channel is left out, because that of an overlay contains its key.
 */
export const BOUND_TOKEN_EVENTS = events({
  'bound_token:created': event({
    ...ids,
    kind: z.enum(KINDS),
    resource_id: z.uuid().describe('The overlay, widget or install'),
    expires_at: instant().nullable(),
    created_at: instant(),
  }),
  'bound_token:revoked': event({ ...ids, revoked_at: instant() }),
});
export type BoundTokenEvent = EventOf<typeof BOUND_TOKEN_EVENTS>;
type Created = Extract<BoundTokenEvent, { type: 'bound_token:created' }>;

export type BoundTokenCommand =
  | (Omit<Created, 'type' | 'created_at'> & { type: 'bound_token:create'; now: string })
  | { type: 'bound_token:revoke'; token_id: string; account_id: string; now: string };

export const boundTokenStream = (token_id: string): string => `bound-token-${token_id}`;

export const boundToken: Decider<null, BoundTokenCommand, BoundTokenEvent> = {
  initial: null,
  stateless: true,
  decide(_state, command) {
    if (command.type === 'bound_token:revoke') {
      const { token_id, account_id, now } = command;
      return [{ type: 'bound_token:revoked', token_id, account_id, revoked_at: now }];
    }
    const { type: _type, now, ...created } = command;
    return [{ type: 'bound_token:created', ...created, created_at: now }];
  },
  evolve: (state) => state,
};
