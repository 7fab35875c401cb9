import { z } from 'zod';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';
import { KEY_FACTS, type KeyLife, requireLivingKey, requireNewKey } from './keys';
import { unreachable } from '../common/unreachable';

/**
 * A personal key: bound to (user, account), its scope fixed at creation, its label the only thing that changes. Events
 * carry the SHA-256 of the key and its display prefix, never the key. Source: spec doc1 §5.4, doc2 §2.5.
 */
export const API_KEY_EVENTS = events({
  'api_key:created': event({
    key_id: z.uuid(),
    account_id: z.uuid(),
    user_id: z.uuid(),
    ...KEY_FACTS,
    expires_at: instant().nullable(),
    created_at: instant(),
  }),
  'api_key:renamed': event({ key_id: z.uuid(), account_id: z.uuid(), label: z.string(), renamed_at: instant() }),
  'api_key:revoked': event({ key_id: z.uuid(), account_id: z.uuid(), revoked_at: instant() }),
});
export type ApiKeyEvent = EventOf<typeof API_KEY_EVENTS>;

export type ApiKeyCommand =
  | (Omit<Extract<ApiKeyEvent, { type: 'api_key:created' }>, 'type' | 'created_at'> & {
      type: 'api_key:create';
      now: string;
    })
  | { type: 'api_key:rename'; label: string; now: string }
  | { type: 'api_key:revoke'; now: string };

export interface ApiKey extends KeyLife {
  account_id: string;
  user_id: string;
  label: string;
}

const initialApiKey: ApiKey = { status: 'none', key_id: '', account_id: '', user_id: '', label: '' };
export const apiKeyStream = (key_id: string): string => `api-key-${key_id}`;

function decideApiKey(state: ApiKey, command: ApiKeyCommand): ApiKeyEvent[] {
  if (command.type === 'api_key:create') {
    const { type: _type, now, ...key } = command;
    requireNewKey(state, now, key.expires_at);
    return [{ type: 'api_key:created', ...key, created_at: now }];
  }
  requireLivingKey(state);
  const { key_id, account_id } = state;
  switch (command.type) {
    case 'api_key:rename':
      if (command.label === state.label) return [];
      return [{ type: 'api_key:renamed', key_id, account_id, label: command.label, renamed_at: command.now }];
    case 'api_key:revoke':
      return [{ type: 'api_key:revoked', key_id, account_id, revoked_at: command.now }];
    default:
      return unreachable(command);
  }
}

function evolveApiKey(state: ApiKey, event: ApiKeyEvent): ApiKey {
  switch (event.type) {
    case 'api_key:created': {
      const { key_id, account_id, user_id, label } = event;
      return { status: 'active', key_id, account_id, user_id, label };
    }
    case 'api_key:renamed':
      return { ...state, label: event.label };
    case 'api_key:revoked':
      return { ...state, status: 'revoked' };
    default:
      return unreachable(event);
  }
}

export const apiKey: Decider<ApiKey, ApiKeyCommand, ApiKeyEvent> = {
  initial: initialApiKey,
  decide: decideApiKey,
  evolve: evolveApiKey,
};
