import type { Decider } from './decider';
import { DomainError } from './errors';
import { unreachable } from './unreachable';

/**
 * A personal key: bound to (user, account), its scope fixed at creation, its label the only thing that changes. Events carry the
 * SHA-256 of the key and its display prefix, never the key. Source: spec doc1 §5.4, doc2 §2.5.
 */
export type ApiKeyEvent =
  | {
      type: 'api_key:created';
      key_id: string;
      account_id: string;
      user_id: string;
      /** Hex SHA-256 of the full key. */
      key_hash: string;
      key_prefix: string;
      label: string;
      permissions: string[];
      expires_at: string | null;
      created_at: string;
    }
  | { type: 'api_key:renamed'; key_id: string; account_id: string; label: string; renamed_at: string }
  | { type: 'api_key:revoked'; key_id: string; account_id: string; revoked_at: string };

export const API_KEY_EVENTS = [
  'api_key:created',
  'api_key:renamed',
  'api_key:revoked',
] as const satisfies readonly ApiKeyEvent['type'][];

export type ApiKeyCommand =
  | (Omit<Extract<ApiKeyEvent, { type: 'api_key:created' }>, 'type' | 'created_at'> & {
      type: 'api_key:create';
      now: string;
    })
  | { type: 'api_key:rename'; label: string; now: string }
  | { type: 'api_key:revoke'; now: string };

export interface ApiKey {
  status: 'none' | 'active' | 'revoked';
  key_id: string;
  account_id: string;
  user_id: string;
  label: string;
}

const initialApiKey: ApiKey = { status: 'none', key_id: '', account_id: '', user_id: '', label: '' };
export const apiKeyStream = (key_id: string): string => `api-key-${key_id}`;

function decideApiKey(state: ApiKey, command: ApiKeyCommand): ApiKeyEvent[] {
  if (command.type === 'api_key:create') {
    if (state.status !== 'none') throw new DomainError('KEY_EXISTS', { key_id: state.key_id });
    const { type: _type, now, ...key } = command;
    if (key.expires_at !== null && Date.parse(key.expires_at) <= Date.parse(now))
      throw new DomainError('EXPIRY_IN_THE_PAST');
    return [{ type: 'api_key:created', ...key, created_at: now }];
  }
  const { key_id, account_id } = state;
  if (state.status !== 'active') throw new DomainError('KEY_NOT_FOUND', { key_id });
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
