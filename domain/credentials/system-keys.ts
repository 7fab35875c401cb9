import { z } from 'zod';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';
import { KEY_FACTS, type KeyLife, requireLivingKey, requireNewKey } from './keys';
import { unreachable } from '../common/unreachable';

/**
 * A key of the service itself, without owner or account; may hold `resource:*` grants. Source: spec doc1 §5.4, "System
 * keys".
 */
export const SYSTEM_KEY_EVENTS = events({
  'system_key:created': event({
    key_id: z.uuid(),
    ...KEY_FACTS,
    created_at: instant(),
  }),
  'system_key:revoked': event({ key_id: z.uuid(), revoked_at: instant() }),
});
export type SystemKeyEvent = EventOf<typeof SYSTEM_KEY_EVENTS>;

export type SystemKeyCommand =
  | (Omit<Extract<SystemKeyEvent, { type: 'system_key:created' }>, 'type' | 'created_at'> & {
      type: 'system_key:create';
      now: string;
    })
  | { type: 'system_key:revoke'; now: string };

export type SystemKey = KeyLife;

const initialSystemKey: SystemKey = { status: 'none', key_id: '' };
export const systemKeyStream = (key_id: string): string => `system-key-${key_id}`;

function decideSystemKey(state: SystemKey, command: SystemKeyCommand): SystemKeyEvent[] {
  switch (command.type) {
    case 'system_key:create': {
      const { type: _type, now, ...key } = command;
      requireNewKey(state, now);
      return [{ type: 'system_key:created', ...key, created_at: now }];
    }
    case 'system_key:revoke':
      requireLivingKey(state);
      return [{ type: 'system_key:revoked', key_id: state.key_id, revoked_at: command.now }];
    default:
      return unreachable(command);
  }
}

function evolveSystemKey(_state: SystemKey, event: SystemKeyEvent): SystemKey {
  return { status: event.type === 'system_key:created' ? 'active' : 'revoked', key_id: event.key_id };
}

export const systemKey: Decider<SystemKey, SystemKeyCommand, SystemKeyEvent> = {
  initial: initialSystemKey,
  decide: decideSystemKey,
  evolve: evolveSystemKey,
};
