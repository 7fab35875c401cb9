import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';
import { unreachable } from '../common/unreachable';
import { granted, revoked, type AccessEntries } from './access-entries';

const ids = { overlay_id: z.uuid(), account_id: z.uuid() };
const settings = {
  name: z.string(),
  width: z.int(),
  height: z.int(),
  background: z.string(),
  folder_id: z.uuid().nullable(),
};
const token = { token_id: z.uuid(), token_hash: z.string() };

/** Overlays of an account, in one stream of it: their number is bounded. Source: spec extra-facts §7. */
export const OVERLAY_EVENTS = events({
  'overlay:created': event(
    {
      ...ids,
      ...settings,
      key: z.string(),
      ...token,
      created_by: z.uuid().nullable(),
      created_at: instant(),
    },
    { audit: { omit: ['key'] } },
  ),
  'overlay:updated': event(
    { ...ids, ...settings, key: z.string(), updated_at: instant() },
    { audit: { omit: ['key'] } },
  ),
  'overlay:token_rotated': event(
    { ...ids, ...token, key: z.string(), rotated_at: instant() },
    { audit: { target: ['overlay', 'overlay_id'], omit: ['key'] } },
  ),
  'overlay:deleted': event({ ...ids, deleted_at: instant() }),
  'overlay:shared': event(
    {
      ...ids,
      link_id: z.uuid(),
      token_hash: z.string(),
      key: z.string(),
      is_listed: z.boolean().describe('False: of an editor, and ended by its time alone'),
      expires_at: instant(),
      created_by: z.uuid().nullable(),
      created_at: instant(),
    },
    { audit: { by: ['link_id'], omit: ['key'] } },
  ),
  'overlay:unshared': event({ ...ids, link_id: z.uuid(), deleted_at: instant() }, { audit: { by: ['link_id'] } }),
  'overlay:access_granted': granted(ids),
  'overlay:access_revoked': revoked(ids),
  'overlay_folder:created': event(
    {
      ...{ folder_id: z.uuid(), account_id: z.uuid() },
      ...{ name: z.string(), parent_id: z.uuid().nullable(), created_at: instant() },
    },
    { audit: { target: ['overlay_folder', 'folder_id'] } },
  ),
  'overlay_folder:updated': event(
    {
      ...{ folder_id: z.uuid(), account_id: z.uuid() },
      ...{ name: z.string(), parent_id: z.uuid().nullable(), updated_at: instant() },
    },
    { audit: { target: ['overlay_folder', 'folder_id'] } },
  ),
  'overlay_folder:deleted': event(
    {
      ...{ folder_id: z.uuid(), account_id: z.uuid() },
      ...{ parent_id: z.uuid().nullable().describe('Folder that takes its contents'), deleted_at: instant() },
    },
    { audit: { target: ['overlay_folder', 'folder_id'] } },
  ),
});
export type OverlayEvent = EventOf<typeof OVERLAY_EVENTS>;
type Named<Type extends OverlayEvent['type']> = Extract<OverlayEvent, { type: Type }>;
type Settings = Pick<Named<'overlay:created'>, keyof typeof settings>;
type Changed<Members> = { [Member in keyof Members]?: Members[Member] | undefined };
export type AccessCopy = Pick<Named<'overlay:access_granted'>, 'entry_id' | 'user_id' | 'role' | 'granted_by'>;
type Token = Pick<Named<'overlay:created'>, 'token_id' | 'token_hash'>;

export type OverlayCommand = { now: string } & (
  | ({ type: 'overlay:create'; most: number; access: readonly AccessCopy[] } & Omit<
      Named<'overlay:created'>,
      'type' | 'created_at'
    >)
  | ({ type: 'overlay:update'; overlay_id: string } & Changed<Settings>)
  | ({ type: 'overlay:rotate_token'; overlay_id: string } & Token)
  | { type: 'overlay:delete'; overlay_id: string }
  | ({ type: 'overlay:share' } & Omit<Named<'overlay:shared'>, 'type' | 'created_at' | 'account_id' | 'key'>)
  | { type: 'overlay:unshare'; link_id: string }
  | ({ type: 'overlay:grant_access'; overlay_id: string } & AccessCopy)
  | { type: 'overlay:revoke_access'; overlay_id: string; user_id: string }
  | ({ type: 'overlay_folder:create' } & Omit<Named<'overlay_folder:created'>, 'type' | 'created_at'>)
  | ({ type: 'overlay_folder:update'; folder_id: string } & Changed<Pick<Folder, 'name' | 'parent_id'>>)
  | { type: 'overlay_folder:delete'; folder_id: string }
);

export interface Overlay extends Settings {
  account_id: string;
  key: string;
  token_hash: string;
  /** Ends of listed links by their ids. */
  links: Readonly<Record<string, string>>;
  /** Entries by user. */
  access: AccessEntries;
}
interface Folder {
  account_id: string;
  name: string;
  parent_id: string | null;
}
/** Overlays and folders of an account by id. */
export interface Overlays {
  overlays: Readonly<Record<string, Overlay>>;
  folders: Readonly<Record<string, Folder>>;
}

/** Active listed links of an overlay. */
export const MAX_LINKS = 20;
/** Folders of an account. */
export const MAX_FOLDERS = 500;

export const overlaysStream = (account_id: string): string => `overlays-${account_id}`;
/** The WebSocket channel of an overlay. Source: spec doc3 §4.1. */
export const overlayChannel = (key: string): string => `overlay:${key}`;

export const overlays: Decider<Overlays, OverlayCommand, OverlayEvent> = {
  initial: { overlays: {}, folders: {} },
  decide(state, command) {
    const { now } = command;
    switch (command.type) {
      case 'overlay:create': {
        const { type: _type, now: _now, most, access, ...created } = command;
        const { overlay_id, account_id, folder_id } = created;
        if (overlay_id in state.overlays) return [];
        requireFolder(state, folder_id);
        if (Object.keys(state.overlays).length >= most)
          throw new DomainError('PLAN_LIMIT_REACHED', { limit: 'max_overlays' });
        const entries = access.map((entry) => grant({ overlay_id, account_id, ...entry }, now));
        return [{ type: 'overlay:created', ...created, created_at: now }, ...entries];
      }
      case 'overlay_folder:create': {
        const { type: _type, now: _now, ...created } = command;
        if (created.folder_id in state.folders) return [];
        requireFolder(state, created.parent_id);
        if (Object.keys(state.folders).length >= MAX_FOLDERS) throw new DomainError('TOO_MANY_FOLDERS');
        return [{ type: 'overlay_folder:created', ...created, created_at: now }];
      }
      case 'overlay:unshare':
        return unshared(state, command.link_id, now);
      case 'overlay_folder:update':
        return folderUpdated(state, command);
      case 'overlay_folder:delete': {
        const { account_id, parent_id } = folderOf(state, command.folder_id);
        const { folder_id } = command;
        return [{ type: 'overlay_folder:deleted', folder_id, account_id, parent_id, deleted_at: now }];
      }
      default:
        return decideOverlay(state, command);
    }
  },
  evolve(state, event) {
    switch (event.type) {
      case 'overlay:created': {
        const { type: _type, overlay_id, created_by: _by, created_at: _at, token_id: _id, ...overlay } = event;
        return withOverlay(state, overlay_id, { ...overlay, links: {}, access: {} });
      }
      case 'overlay:deleted': {
        const { [event.overlay_id]: _deleted, ...others } = state.overlays;
        return { ...state, overlays: others };
      }
      case 'overlay_folder:created':
      case 'overlay_folder:updated': {
        const { folder_id, account_id, name, parent_id } = event;
        return { ...state, folders: { ...state.folders, [folder_id]: { account_id, name, parent_id } } };
      }
      case 'overlay_folder:deleted':
        return withoutFolder(state, event);
      default:
        return withOverlay(state, event.overlay_id, evolveOverlay(state.overlays[event.overlay_id]!, event));
    }
  },
};

type OfOverlay = Exclude<
  OverlayCommand,
  {
    type:
      | 'overlay:create'
      | 'overlay:unshare'
      | 'overlay_folder:create'
      | 'overlay_folder:update'
      | 'overlay_folder:delete';
  }
>;

function decideOverlay(state: Overlays, command: OfOverlay): OverlayEvent[] {
  const { now, overlay_id } = command;
  const overlay = state.overlays[overlay_id];
  if (overlay === undefined) throw new DomainError('OVERLAY_NOT_FOUND', { overlay_id });
  const { account_id, key } = overlay;
  const of = { overlay_id, account_id };
  switch (command.type) {
    case 'overlay:update': {
      const { name = overlay.name, width = overlay.width, height = overlay.height } = command;
      const { background = overlay.background, folder_id = overlay.folder_id } = command;
      const next = { name, width, height, background, folder_id };
      if (Object.entries(next).every(([member, value]) => overlay[member as keyof Settings] === value)) return [];
      requireFolder(state, folder_id);
      return [{ type: 'overlay:updated', ...of, ...next, key, updated_at: now }];
    }
    case 'overlay:rotate_token': {
      const { token_id, token_hash } = command;
      return [{ type: 'overlay:token_rotated', ...of, token_id, token_hash, key, rotated_at: now }];
    }
    case 'overlay:delete':
      return [{ type: 'overlay:deleted', ...of, deleted_at: now }];
    case 'overlay:share': {
      const { type: _type, now: _now, ...link } = command;
      const active = Object.values(overlay.links).filter((expires_at) => expires_at > now);
      if (link.is_listed && active.length >= MAX_LINKS) throw new DomainError('TOO_MANY_LINKS');
      return [{ type: 'overlay:shared', ...of, ...link, key, created_at: now }];
    }
    case 'overlay:grant_access': {
      const { user_id, role, granted_by } = command;
      const entry_id = overlay.access[user_id]?.entry_id ?? command.entry_id;
      return [grant({ ...of, entry_id, user_id, role, granted_by }, now)];
    }
    case 'overlay:revoke_access':
      if (!(command.user_id in overlay.access)) throw new DomainError('ENTRY_NOT_FOUND');
      return [{ type: 'overlay:access_revoked', ...of, user_id: command.user_id, revoked_at: now }];
    default:
      return unreachable(command);
  }
}

function unshared({ overlays: all }: Overlays, link_id: string, now: string): OverlayEvent[] {
  const [overlay_id, overlay] = Object.entries(all).find(([, { links }]) => link_id in links) ?? [];
  if (overlay_id === undefined || overlay!.links[link_id]! <= now) throw new DomainError('LINK_NOT_FOUND');
  const { account_id } = overlay!;
  return [{ type: 'overlay:unshared', overlay_id, account_id, link_id, deleted_at: now }];
}

const grant = (entry: AccessCopy & { overlay_id: string; account_id: string }, now: string): OverlayEvent => ({
  type: 'overlay:access_granted',
  ...entry,
  granted_at: now,
});

function folderUpdated(
  state: Overlays,
  command: Extract<OverlayCommand, { type: 'overlay_folder:update' }>,
): OverlayEvent[] {
  const { folder_id, now } = command;
  const folder = folderOf(state, folder_id);
  const { name = folder.name, parent_id = folder.parent_id } = command;
  if (name === folder.name && parent_id === folder.parent_id) return [];
  requireFolder(state, parent_id);
  for (let above = parent_id; above !== null; above = state.folders[above]!.parent_id) {
    if (above === folder_id) throw new DomainError('FOLDER_CYCLE');
  }
  const { account_id } = folder;
  return [{ type: 'overlay_folder:updated', folder_id, account_id, name, parent_id, updated_at: now }];
}

function folderOf(state: Overlays, folder_id: string): Folder {
  const folder = state.folders[folder_id];
  if (folder === undefined) throw new DomainError('FOLDER_NOT_FOUND', { folder_id });
  return folder;
}

function requireFolder(state: Overlays, folder_id: string | null): void {
  if (folder_id !== null) folderOf(state, folder_id);
}

const withOverlay = (state: Overlays, overlay_id: string, overlay: Overlay): Overlays => ({
  ...state,
  overlays: { ...state.overlays, [overlay_id]: overlay },
});

function withoutFolder(
  { overlays: all, folders }: Overlays,
  { folder_id, parent_id }: Named<'overlay_folder:deleted'>,
): Overlays {
  const { [folder_id]: _deleted, ...others } = folders;
  const moved = Object.entries(others).map(([id, one]) => [
    id,
    one.parent_id === folder_id ? { ...one, parent_id } : one,
  ]);
  const kept = Object.entries(all).map(([id, one]) => [
    id,
    one.folder_id === folder_id ? { ...one, folder_id: parent_id } : one,
  ]);
  return { overlays: Object.fromEntries(kept), folders: Object.fromEntries(moved) };
}

function evolveOverlay(
  overlay: Overlay,
  event: Exclude<
    OverlayEvent,
    | { type: 'overlay:created' | 'overlay:deleted' }
    | { type: 'overlay_folder:created' | 'overlay_folder:updated' | 'overlay_folder:deleted' }
  >,
): Overlay {
  switch (event.type) {
    case 'overlay:updated': {
      const { name, width, height, background, folder_id } = event;
      return { ...overlay, name, width, height, background, folder_id };
    }
    case 'overlay:token_rotated':
      return { ...overlay, token_hash: event.token_hash };
    case 'overlay:shared':
      return event.is_listed
        ? { ...overlay, links: { ...unended(overlay.links, event.created_at), [event.link_id]: event.expires_at } }
        : overlay;
    case 'overlay:unshared': {
      const { [event.link_id]: _deleted, ...links } = overlay.links;
      return { ...overlay, links };
    }
    case 'overlay:access_granted': {
      const { user_id, entry_id, role } = event;
      return { ...overlay, access: { ...overlay.access, [user_id]: { entry_id, role } } };
    }
    case 'overlay:access_revoked': {
      const { [event.user_id]: _revoked, ...access } = overlay.access;
      return { ...overlay, access };
    }
    default:
      return unreachable(event);
  }
}

const unended = (links: Overlay['links'], now: string): Overlay['links'] =>
  Object.fromEntries(Object.entries(links).filter(([, expires_at]) => expires_at > now));
