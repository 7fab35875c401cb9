import type { CallerKind } from '../../access/authentication/caller';
import { ACCOUNT, type Client, OTHER_ACCOUNT } from '../support/realtime';
import { anonymous, as, EVENTS, INSTALL, may, node, nothing, verdict } from './house';
import type { Proofs, Row } from './spec';

/** What the rows of the section say of a channel, proven on the gate that its family declares. */
export const GATES: Record<string, (row: Row, name: string) => Promise<{ in: Client[]; out: Client[] }>> = {
  async OverlayToken(row, name) {
    const of = (kind: string, channel: string) =>
      as({ ...nothing, kind: kind.replace('_token', '') as CallerKind, bound_channel: channel });
    return {
      in: await Promise.all(row.contexts.map((kind: string) => of(kind, name))),
      out: await Promise.all([
        ...row.contexts.map((kind: string) => of(kind, `${name}2`)),
        as({ ...nothing, kind: row.gate === 'WidgetToken' ? 'overlay' : 'widget', bound_channel: name }),
        may('overlays:read', 'widgets:read'),
      ]),
    };
  },
  WidgetToken: (row, name) => GATES.OverlayToken!(row, name),
  async Permission({ permission }, name) {
    const of_install = name.startsWith('ext-storage:');
    const token = { ...nothing, kind: 'extension', bound_channel: name } as const;
    return {
      in: [
        of_install ? await as(token) : await may(permission),
        await as({ kind: 'system_key', account_id: null, permissions: new Set([permission.replace(/:.*/, ':*')]) }),
      ].slice(0, of_install ? 1 : 2),
      out: [
        await may('settings:read', permission.replace(/:.*/, ':other')),
        await as({ account_id: OTHER_ACCOUNT, permissions: new Set(of_install ? [] : [permission]) }),
        await as({ ...nothing, kind: 'widget', bound_channel: 'widget:w' }),
        await as({ ...token, bound_channel: `ext-storage:${ACCOUNT}` }),
      ],
    };
  },
  async AccountScoped(row, name) {
    const widget = { ...nothing, kind: 'widget', bound_channel: 'widget:mine' } as const;
    const overlay = { ...nothing, kind: 'overlay', bound_channel: 'overlay:k' } as const;
    const presence = row.channel.startsWith('presence:');
    return {
      in: [await as({ user_id: null }), ...(presence ? [] : [await as(overlay), await as(widget)])],
      out: [
        ...(presence ? [await as(overlay), await as(widget)] : []),
        await as({ ...widget, account_id: OTHER_ACCOUNT, bound_channel: `${name}2` }),
        await as({ ...overlay, account_id: OTHER_ACCOUNT }),
        await as({ account_id: OTHER_ACCOUNT }),
      ],
    };
  },
  async ExtensionOwner() {
    return { in: [await may()], out: [] };
  },
  async PublicWhenFeature() {
    return { in: [await anonymous(), await may()], out: [] };
  },
  async Public() {
    return { in: [await anonymous(), await may()], out: [] };
  },
};

/** Each kind of gate. */
export const GATE_KINDS: Record<string, Proofs> = {
  gate_kinds: {
    async Public() {
      expect(await verdict(await anonymous(), `login-assignments:${ACCOUNT}`)).toBe('subscribed');
    },
    async PublicWhenFeature() {
      expect(await verdict(await anonymous(), 'ideas:list')).toBe('subscribed');
      node.off.add('system:ideas_hub_public');
      expect(await verdict(await anonymous(), 'ideas:list')).toBe('FEATURE_DISABLED');
    },
    async Authenticated() {
      expect(await verdict(await may(), 'test-authenticated:x')).toBe('subscribed');
      expect(await verdict(await anonymous(), 'test-authenticated:x')).toBe('UNAUTHORIZED');
    },
    async Permission() {
      expect(await verdict(await may('events:read'), EVENTS)).toBe('subscribed');
      expect(await verdict(await may('events:read'), `events:${OTHER_ACCOUNT}`)).toBe('UNAUTHORIZED');
    },
    async AccountScoped() {
      expect(await verdict(await may(), `sounds:${ACCOUNT}`)).toBe('subscribed');
      expect(await verdict(await may('sounds:read'), `sounds:${OTHER_ACCOUNT}`)).toBe('UNAUTHORIZED');
    },
    async UserPermission() {
      const reader = await as({ user_permissions: new Set(['ideas:read']) });
      expect(await verdict(reader, 'test-user-permission:x')).toBe('subscribed');
      // Scopes never mix: an account's permission of that name opens nothing.
      for (const client of [await may('ideas:read'), await anonymous()])
        expect(await verdict(client, 'test-user-permission:x')).toBe('UNAUTHORIZED');
    },
    async OverlayToken() {
      const token = { ...nothing, kind: 'overlay', bound_channel: 'overlay:a' } as const;
      expect(await verdict(await as(token), 'overlay:a')).toBe('subscribed');
      expect(await verdict(await as(token), 'overlay:b')).toBe('UNAUTHORIZED');
    },
    async WidgetToken() {
      const token = { ...nothing, kind: 'widget', bound_channel: 'widget:a' } as const;
      expect(await verdict(await as(token), 'widget:a')).toBe('subscribed');
      expect(await verdict(await as({ ...token, kind: 'overlay' }), 'widget:a')).toBe('UNAUTHORIZED');
    },
    async ExtensionOwner() {
      expect(await verdict(await may(), `ext-logs:${INSTALL}`)).toBe('subscribed');
      expect(await verdict(await may(), `ext-logs:${ACCOUNT}`)).toBe('UNAUTHORIZED');
    },
    async Unknown() {
      const all = await as({ kind: 'system_key', permissions: new Set(['*:*', 'ext:*', 'events:*']) });
      for (const channel of [`ext:${INSTALL}`, 'nothing:there', 'events', '', `Events:${ACCOUNT}`])
        expect(await verdict(all, channel)).toBe('UNAUTHORIZED');
    },
  },
};
