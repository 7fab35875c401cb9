import { z } from 'zod';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { requireNewKey } from './keys';
import { unreachable } from '../common/unreachable';

const ids = { token_id: z.uuid(), account_id: z.uuid() };

/**
 * A popout token: a narrow scope for a window or a browser source, on an account and for one of its members. Events
 * carry its SHA-256 and its display prefix, never the token. Source: spec doc1 §5.5, doc2 §2.6.
 */
export const POPOUT_TOKEN_EVENTS = events({
  'popout_token:created': event({
    ...ids,
    user_id: z.uuid().describe('The member that it acts for'),
    created_by: z.uuid(),
    token_hash: z.string().describe('Hex SHA-256 of the full token'),
    token_prefix: z.string(),
    label: z.string().nullable(),
    permissions: z.array(z.string()),
    expires_at: instant().nullable(),
    created_at: instant(),
  }),
  'popout_token:updated': event({
    ...ids,
    label: z.string().nullable(),
    expires_at: instant().nullable().describe('May lie in the past: that ends it, and can be taken back'),
    updated_at: instant(),
  }),
  'popout_token:revoked': event({ ...ids, revoked_at: instant() }),
});
export type PopoutTokenEvent = EventOf<typeof POPOUT_TOKEN_EVENTS>;
type Created = Extract<PopoutTokenEvent, { type: 'popout_token:created' }>;

export type PopoutTokenCommand =
  | (Omit<Created, 'type' | 'created_at'> & { type: 'popout_token:create'; now: string })
  | { type: 'popout_token:update'; label?: string | null; expires_at?: string | null; now: string }
  | { type: 'popout_token:revoke'; now: string };

export interface PopoutToken {
  status: 'none' | 'active' | 'revoked';
  token_id: string;
  account_id: string;
  label: string | null;
  permissions: readonly string[];
  expires_at: string | null;
}

export const popoutTokenStream = (token_id: string): string => `popout-token-${token_id}`;

export const popoutToken: Decider<PopoutToken, PopoutTokenCommand, PopoutTokenEvent> = {
  initial: { status: 'none', token_id: '', account_id: '', label: null, permissions: [], expires_at: null },
  decide(state, command) {
    const { status, token_id, account_id } = state;
    if (command.type === 'popout_token:create') {
      const { type: _type, now, ...token } = command;
      requireNewKey({ status, key_id: token_id }, now, token.expires_at);
      return [{ type: 'popout_token:created', ...token, created_at: now }];
    }
    if (status === 'none') throw new DomainError('TOKEN_NOT_FOUND', { token_id });
    switch (command.type) {
      case 'popout_token:update': {
        if (status === 'revoked') throw new DomainError('TOKEN_REVOKED', { token_id });
        const { label = state.label, expires_at = state.expires_at, now } = command;
        if (label === state.label && expires_at === state.expires_at) return [];
        return [{ type: 'popout_token:updated', token_id, account_id, label, expires_at, updated_at: now }];
      }
      case 'popout_token:revoke':
        // Asked twice it is revoked once.
        return status === 'revoked'
          ? []
          : [{ type: 'popout_token:revoked', token_id, account_id, revoked_at: command.now }];
      default:
        return unreachable(command);
    }
  },
  evolve(state, event) {
    switch (event.type) {
      case 'popout_token:created': {
        const { token_id, account_id, label, permissions, expires_at } = event;
        return { status: 'active', token_id, account_id, label, permissions, expires_at };
      }
      case 'popout_token:updated':
        return { ...state, label: event.label, expires_at: event.expires_at };
      case 'popout_token:revoked':
        return { ...state, status: 'revoked' };
      default:
        return unreachable(event);
    }
  },
};
