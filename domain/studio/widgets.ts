import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';
import { unreachable } from '../common/unreachable';
import { granted, revoked, type AccessEntries } from './access-entries';

const ids = { widget_id: z.uuid(), account_id: z.uuid() };
const config = z.string().describe('JSON text');
/** Of the page; null in events of the first version, whose tokens are rows without an event. */
const token = { token_id: z.uuid().nullable(), token_hash: z.string().nullable() };
const TOKEN_ADDED = {
  version: 2,
  upcast: [(data: object) => ({ ...data, token_id: null, token_hash: null })],
};

/** A widget of an account. Source: spec doc2 §2.13, §4.2 "Widgets". */
export const WIDGET_EVENTS = events({
  'widget:created': event(
    {
      ...ids,
      widget_type: z.string(),
      name: z.string(),
      config,
      ...token,
      created_by: z.uuid().nullable(),
      created_at: instant(),
    },
    TOKEN_ADDED,
  ),
  'widget:updated': event(
    { ...ids, name: z.string(), config, revision: z.int().nullable(), updated_at: instant() },
    { version: 2, upcast: [(data) => ({ ...data, revision: null })] },
  ),
  'widget:token_rotated': event(
    { ...ids, ...token, rotated_at: instant() },
    { ...TOKEN_ADDED, audit: { target: ['widget', 'widget_id'] } },
  ),
  'widget:deleted': event({ ...ids, deleted_at: instant() }),
  'widget:access_granted': granted(ids),
  'widget:access_revoked': revoked(ids),
});
export type WidgetEvent = EventOf<typeof WIDGET_EVENTS>;
type Created = Extract<WidgetEvent, { type: 'widget:created' }>;
type Granted = Extract<WidgetEvent, { type: 'widget:access_granted' }>;

export type WidgetCommand = { now: string } & (
  | ({ type: 'widget:create' } & Omit<Created, 'type' | 'created_at'>)
  | { type: 'widget:update'; name?: string | undefined; config?: string | undefined }
  | { type: 'widget:rotate_token'; token_id: string; token_hash: string }
  | { type: 'widget:delete' }
  | ({ type: 'widget:grant_access' } & Pick<Granted, 'entry_id' | 'user_id' | 'role' | 'granted_by'>)
  | { type: 'widget:revoke_access'; user_id: string }
);

export interface Widget {
  status: 'none' | 'active' | 'deleted';
  widget_id: string;
  account_id: string;
  widget_type: string;
  name: string;
  config: string;
  /** Number of changes since it was created. */
  revision: number;
  /** Entries by user. */
  access: AccessEntries;
}

export const widgetStream = (widget_id: string): string => `widget-${widget_id}`;
/** The WebSocket channel of a widget. Source: spec doc3 §4.1. */
export const widgetChannel = (widget_id: string): string => `widget:${widget_id}`;

export const widget: Decider<Widget, WidgetCommand, WidgetEvent> = {
  initial: {
    ...{ status: 'none', widget_id: '', account_id: '', widget_type: '', name: '', config: '{}', revision: 0 },
    access: {},
  },
  decide(state, command) {
    const { now } = command;
    if (command.type === 'widget:create') {
      const { type: _type, now: _now, ...created } = command;
      return state.status === 'none' ? [{ type: 'widget:created', ...created, created_at: now }] : [];
    }
    if (state.status !== 'active') throw new DomainError('WIDGET_NOT_FOUND');
    const { widget_id, account_id } = state;
    const of = { widget_id, account_id };
    switch (command.type) {
      case 'widget:update': {
        const { name = state.name, config: changed = state.config } = command;
        if (name === state.name && changed === state.config) return [];
        const revision = state.revision + 1;
        return [{ type: 'widget:updated', ...of, name, config: changed, revision, updated_at: now }];
      }
      case 'widget:rotate_token': {
        const { token_id, token_hash } = command;
        return [{ type: 'widget:token_rotated', ...of, token_id, token_hash, rotated_at: now }];
      }
      case 'widget:delete':
        return [{ type: 'widget:deleted', ...of, deleted_at: now }];
      case 'widget:grant_access': {
        const { user_id, role, granted_by } = command;
        // The same role counts again: a member who left and came back has no entry until then.
        const entry_id = state.access[user_id]?.entry_id ?? command.entry_id;
        return [{ type: 'widget:access_granted', ...of, entry_id, user_id, role, granted_by, granted_at: now }];
      }
      case 'widget:revoke_access':
        if (!(command.user_id in state.access)) throw new DomainError('ENTRY_NOT_FOUND');
        return [{ type: 'widget:access_revoked', ...of, user_id: command.user_id, revoked_at: now }];
      default:
        return unreachable(command);
    }
  },
  evolve(state, event) {
    switch (event.type) {
      case 'widget:created': {
        const { widget_id, account_id, widget_type, name, config: first } = event;
        return { ...state, status: 'active', widget_id, account_id, widget_type, name, config: first, revision: 1 };
      }
      case 'widget:updated':
        return { ...state, name: event.name, config: event.config, revision: state.revision + 1 };
      case 'widget:token_rotated':
        return state;
      case 'widget:deleted':
        return { ...state, status: 'deleted', access: {} };
      case 'widget:access_granted': {
        const { user_id, entry_id, role } = event;
        return { ...state, access: { ...state.access, [user_id]: { entry_id, role } } };
      }
      case 'widget:access_revoked': {
        const { [event.user_id]: _revoked, ...access } = state.access;
        return { ...state, access };
      }
      default:
        return unreachable(event);
    }
  },
};
