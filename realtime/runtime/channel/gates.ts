import type { Caller, CallerKind } from '../../../access/authentication/caller';
import { hasPermission, isFirstParty } from '../../../access/authorization/permission-check';
import type { FeatureFlags } from '../../../app/services';
import type { ChannelOwner } from '../../../kernel/channel';
import type { ChannelServices, Families, Family } from './family';

export interface AuthorizerDeps {
  families: Families;
  services: ChannelServices;
  features: FeatureFlags;
  /**
   * Permissions that a caller has on an account other than its active one (a member of several accounts). Absent: none.
   */
  permissions_on?: ((caller: Caller, account_id: string) => Promise<ReadonlySet<string> | null>) | undefined;
}

export type Verdict = 'ok' | 'UNAUTHORIZED' | 'FEATURE_DISABLED';

/** Channels that the grants of an install open, besides its own storage. Source: spec rulings, c16. */
const OF_INSTALLS: ReadonlySet<string> = new Set(['events:read', 'chat:read']);

/** Callers that are the page of an overlay or a widget. */
const OF_PAGES: ReadonlySet<CallerKind> = new Set(['overlay', 'shared_overlay', 'widget']);

/**
 * Decides who may read or write a channel: gate first, then the flag, so that only who may ask learns whether a feature
 * is on.
 */
export class ChannelAuthorizers {
  constructor(private readonly deps: AuthorizerDeps) {}

  /** May this caller subscribe? Source: spec doc3 §4.1, rulings c16, c27, c29. */
  async mayRead(caller: Caller, channel: string): Promise<Verdict> {
    const named = this.deps.families.of(channel);
    if (!named) return 'UNAUTHORIZED';
    const { family, id } = named;
    const { gate } = family;
    if (gate.kind === 'public_when_feature') {
      return (await this.enabled(gate.flag, null)) && (await this.enabled(family.flag, null))
        ? 'ok'
        : 'FEATURE_DISABLED';
    }
    if (gate.kind === 'public') return (await this.enabled(family.flag, null)) ? 'ok' : 'FEATURE_DISABLED';
    if (caller.kind === 'anonymous') return 'UNAUTHORIZED';
    if (gate.kind === 'own_user' && (caller.user_id !== id || !isFirstParty(caller))) return 'UNAUTHORIZED';
    const owner = await this.ownerOf(channel, caller);
    if (!(await this.passes(family, owner, caller))) return 'UNAUTHORIZED';
    return (await this.enabled(family.flag, owner?.account_id ?? null)) ? 'ok' : 'FEATURE_DISABLED';
  }

  /**
   * May this caller broadcast? Only on the families that say so; refused is `UNAUTHORIZED` (rulings "refused
   * broadcast").
   */
  async mayWrite(caller: Caller, channel: string): Promise<Verdict> {
    const family = this.deps.families.of(channel)?.family;
    if (family?.writable === undefined || caller.kind === 'anonymous') return 'UNAUTHORIZED';
    const owner = await this.ownerOf(channel, caller);
    if (owner === null || !(await this.has(caller, family.writable, owner.account_id))) return 'UNAUTHORIZED';
    return (await this.enabled(family.flag, owner.account_id)) ? 'ok' : 'FEATURE_DISABLED';
  }

  /** Owner of the channel; null without an owner, or where the named thing does not exist. */
  private async ownerOf(channel: string, caller: Caller): Promise<ChannelOwner | null> {
    const named = this.deps.families.of(channel);
    if (!named) return null;
    const { family, form, id } = named;
    if (form.of_account) return { account_id: id, bound: false, owned: false };
    const services = { ...this.deps.services, ownerOf: (other: string) => this.ownerOf(other, caller) };
    return (await family.owner?.(id, caller, services)) ?? null;
  }

  private async passes({ gate }: Family, owner: ChannelOwner | null, caller: Caller): Promise<boolean> {
    if (gate.kind === 'authenticated' || gate.kind === 'own_user') return true;
    if (gate.kind === 'user_permission') return caller.user_permissions.has(gate.permission);
    if (owner === null) return false;
    switch (gate.kind) {
      case 'permission':
        return gate.bound === caller.kind ? owner.bound : this.has(caller, gate.permission, owner.account_id);
      case 'account_scoped':
      case 'account_and_pages':
        // An extension is no member of the account: it has its grants and no more (c16).
        if (caller.kind === 'extension' || (gate.kind === 'account_scoped' && OF_PAGES.has(caller.kind))) return false;
        return (await this.permissionsOn(caller, owner.account_id)) !== null;
      case 'bound_token':
        return gate.callers.includes(caller.kind) && owner.bound;
      case 'extension_owner':
        return owner.owned;
      default:
        return false;
    }
  }

  private async has(caller: Caller, permission: string, account_id: string): Promise<boolean> {
    if (caller.kind === 'extension') {
      const granted = caller.account_id === account_id && OF_INSTALLS.has(permission);
      return granted && (caller.install_grants?.has(permission) ?? false);
    }
    const permissions = await this.permissionsOn(caller, account_id);
    return permissions !== null && hasPermission(caller, permissions, permission);
  }

  /**
   * Permissions of the caller on this account; null without any relation to it. System keys are bound to no account.
   */
  private async permissionsOn(caller: Caller, account_id: string): Promise<ReadonlySet<string> | null> {
    if (caller.kind === 'system_key' || caller.account_id === account_id) return caller.permissions;
    return (await this.deps.permissions_on?.(caller, account_id)) ?? null;
  }

  private async enabled(flag: string | null, account_id: string | null): Promise<boolean> {
    return flag === null || this.deps.features.enabled(flag, account_id);
  }
}
