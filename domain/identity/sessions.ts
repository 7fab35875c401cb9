import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';
import { unreachable } from '../common/unreachable';

/** Why a session is over. */
export const SESSION_ENDS = ['logout', 'revoked', 'reuse', 'user_deleted', 'expired'] as const;
export type SessionEnd = (typeof SESSION_ENDS)[number];

const ids = { session_id: z.uuid(), user_id: z.uuid() };
const active_account_id = z.uuid().nullable();

/**
 * A login and what became of it. Which refresh token is the current one is no event: it changes with every refresh and
 * is a row of its own (services/identity/sessions.ts). Source: spec doc1 §5.3.
 */
export const SESSION_EVENTS = events({
  'session:started': event({
    ...ids,
    provider: z.string().nullable().describe('Null: an operator opened it, or a build before these events'),
    active_account_id,
    started_at: instant(),
    ends_at: instant(),
  }),
  'session:account_switched': event({ ...ids, active_account_id, switched_at: instant() }),
  'session:reuse_detected': event({ ...ids, detected_at: instant() }),
  'session:ended': event({ ...ids, reason: z.enum(SESSION_ENDS), ended_at: instant() }),
});
export type SessionEvent = EventOf<typeof SESSION_EVENTS>;

interface Started {
  session_id: string;
  user_id: string;
  provider: string | null;
  active_account_id: string | null;
  ends_at: string;
}
export type SessionCommand =
  | ({ type: 'session:start'; now: string } & Started)
  /** Of a session that began before its events did; nothing when it has some. */
  | ({ type: 'session:adopt'; started_at: string; now: string } & Started)
  | { type: 'session:switch_account'; active_account_id: string | null; now: string }
  | { type: 'session:report_reuse'; now: string }
  | { type: 'session:end'; reason: SessionEnd; now: string };

export interface Session {
  session_id: string;
  user_id: string;
  status: 'open' | 'ended';
  active_account_id: string | null;
}

export const sessionStream = (session_id: string): string => `session-${session_id}`;

function decideSession(state: Session | null, command: SessionCommand): SessionEvent[] {
  if (command.type === 'session:start' || command.type === 'session:adopt') {
    if (state !== null) {
      if (command.type === 'session:adopt') return [];
      throw new DomainError('SESSION_EXISTS', { session_id: state.session_id });
    }
    const { session_id, user_id, provider, active_account_id, ends_at, now } = command;
    const started_at = command.type === 'session:adopt' ? command.started_at : now;
    return [{ type: 'session:started', session_id, user_id, provider, active_account_id, started_at, ends_at }];
  }
  // An ended session stays ended.
  if (state === null || state.status === 'ended') return [];
  const { session_id, user_id } = state;
  const { now } = command;
  const ended = (reason: SessionEnd) =>
    ({ type: 'session:ended', session_id, user_id, reason, ended_at: now }) satisfies SessionEvent;
  switch (command.type) {
    case 'session:switch_account': {
      const { active_account_id } = command;
      if (active_account_id === state.active_account_id) return [];
      return [{ type: 'session:account_switched', session_id, user_id, active_account_id, switched_at: now }];
    }
    case 'session:report_reuse':
      return [{ type: 'session:reuse_detected', session_id, user_id, detected_at: now }, ended('reuse')];
    case 'session:end':
      return [ended(command.reason)];
    default:
      return unreachable(command);
  }
}

function evolveSession(state: Session | null, event: SessionEvent): Session {
  const { session_id, user_id } = event;
  const before: Session = state ?? { session_id, user_id, status: 'open', active_account_id: null };
  switch (event.type) {
    case 'session:started':
    case 'session:account_switched':
      return { ...before, active_account_id: event.active_account_id };
    case 'session:reuse_detected':
      return before;
    case 'session:ended':
      return { ...before, status: 'ended' };
    default:
      return unreachable(event);
  }
}

export const session: Decider<Session | null, SessionCommand, SessionEvent> = {
  initial: null,
  decide: decideSession,
  evolve: evolveSession,
};
