import { z } from 'zod';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';
import { KEY_FACTS, type KeyLife, requireLivingKey, requireNewKey } from './keys';
import { unreachable } from '../common/unreachable';

const ids = { key_id: z.uuid(), account_id: z.uuid() };

/**
 * A key that belongs to an account and to no member; its label is the only thing that changes. Events carry the SHA-256
 * of the key and its display prefix, never the key. Source: spec doc1 §5.4, doc2 §2.5.
 */
export const SERVICE_KEY_EVENTS = events({
  'account:service_key_created': event(
    {
      ...ids,
      created_by: z.uuid().nullable().describe('The member who made it; null when another key did'),
      made_with: z.uuid().nullable().describe('The service key that made it, with which it ends'),
      ...KEY_FACTS,
      expires_at: instant().nullable(),
      created_at: instant(),
    },
    { version: 2, upcast: [(data) => ({ ...data, made_with: null })] },
  ),
  'account:service_key_updated': event({ ...ids, label: z.string(), updated_at: instant() }),
  'account:service_key_revoked': event({ ...ids, revoked_at: instant() }),
});
export type ServiceKeyEvent = EventOf<typeof SERVICE_KEY_EVENTS>;
type Created = Extract<ServiceKeyEvent, { type: 'account:service_key_created' }>;

export type ServiceKeyCommand =
  | (Omit<Created, 'type' | 'created_at'> & { type: 'service_key:create'; now: string })
  | { type: 'service_key:rename'; label: string; now: string }
  | { type: 'service_key:revoke'; now: string };

export interface ServiceKey extends KeyLife {
  account_id: string;
  label: string;
}

export const serviceKeyStream = (key_id: string): string => `service-key-${key_id}`;

export const serviceKey: Decider<ServiceKey, ServiceKeyCommand, ServiceKeyEvent> = {
  initial: { status: 'none', key_id: '', account_id: '', label: '' },
  decide(state, command) {
    if (command.type === 'service_key:create') {
      const { type: _type, now, ...key } = command;
      requireNewKey(state, now, key.expires_at);
      return [{ type: 'account:service_key_created', ...key, created_at: now }];
    }
    requireLivingKey(state);
    const { key_id, account_id } = state;
    switch (command.type) {
      case 'service_key:rename': {
        const { label, now } = command;
        if (label === state.label) return [];
        return [{ type: 'account:service_key_updated', key_id, account_id, label, updated_at: now }];
      }
      case 'service_key:revoke':
        return [{ type: 'account:service_key_revoked', key_id, account_id, revoked_at: command.now }];
      default:
        return unreachable(command);
    }
  },
  evolve(state, event) {
    switch (event.type) {
      case 'account:service_key_created': {
        const { key_id, account_id, label } = event;
        return { status: 'active', key_id, account_id, label };
      }
      case 'account:service_key_updated':
        return { ...state, label: event.label };
      case 'account:service_key_revoked':
        return { ...state, status: 'revoked' };
      default:
        return unreachable(event);
    }
  },
};
