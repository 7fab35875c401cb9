import { z } from 'zod';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';

const ids = { grant_id: z.uuid(), client_id: z.uuid(), user_id: z.uuid(), account_id: z.uuid() };

/** Why a grant ended before its expiry. `limit_exceeded`: the user gave this client too many, and it was the oldest. */
const REASONS = ['code_reused', 'refresh_token_reused', 'limit_exceeded'] as const;
export type GrantEnd = (typeof REASONS)[number];

/**
 * Grant of a user to a client, from the exchanged code to its end. It also ends with the session in which the user
 * agreed, and with the client, without an event of its own. Source: spec rulings, "OAuth clients".
 */
export const OAUTH_GRANT_EVENTS = events({
  'oauth_grant:begun': event({
    ...ids,
    session_id: z.uuid().describe('In which the user agreed'),
    scopes: z.array(z.string()),
    begun_at: instant(),
    ends_at: instant(),
  }),
  // The second version has more reasons.
  'oauth_grant:ended': event(
    { ...ids, reason: z.enum(REASONS), ended_at: instant() },
    { version: 2, upcast: [(data) => data] },
  ),
});
export type OauthGrantEvent = EventOf<typeof OAUTH_GRANT_EVENTS>;
type Begun = Extract<OauthGrantEvent, { type: 'oauth_grant:begun' }>;
type Ids = Pick<Begun, keyof typeof ids>;

export type OauthGrantCommand =
  | (Omit<Begun, 'type' | 'begun_at'> & { type: 'oauth_grant:begin'; now: string })
  | ({ type: 'oauth_grant:end'; reason: GrantEnd; now: string } & Ids);

export const oauthGrantStream = (grant_id: string): string => `oauth-grant-${grant_id}`;

/** A code that came twice may end what has not begun yet: then it never does. */
export const oauthGrant: Decider<'none' | 'begun' | 'ended', OauthGrantCommand, OauthGrantEvent> = {
  initial: 'none',
  decide(state, command) {
    if (command.type === 'oauth_grant:end') {
      if (state === 'ended') return [];
      const { type: _type, now, ...ended } = command;
      return [{ type: 'oauth_grant:ended', ...ended, ended_at: now }];
    }
    if (state !== 'none') throw new DomainError('GRANT_OVER');
    const { type: _type, now, ...begun } = command;
    return [{ type: 'oauth_grant:begun', ...begun, begun_at: now }];
  },
  evolve: (_state, event) => (event.type === 'oauth_grant:begun' ? 'begun' : 'ended'),
};
