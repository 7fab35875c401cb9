import type { Caller } from '../../access/caller';
import type { FeatureFlags } from '../../access/services';
import { parseChannel, type ChannelFamily, type Resource } from '../channels';

/** Whose a named resource is, and whether this caller's token is bound to exactly it. */
export interface ResolvedResource {
  account_id: string;
  /** The caller's token was issued for this one resource. */
  bound: boolean;
  /** The caller owns it or belongs to the team that does (extensions). */
  owned: boolean;
}

/** Looks a channel's resource up; null when there is none. Areas add theirs; a family without one is refused. */
export type ResourceResolvers = Partial<
  Record<Exclude<Resource, 'account' | 'presence'>, (id: string, caller: Caller) => Promise<ResolvedResource | null>>
>;

export interface GateDeps {
  features: FeatureFlags;
  /**
   * Permissions that a caller has on an account other than its active one (a member of several accounts). Absent: none.
   */
  permissions_on?: (caller: Caller, account_id: string) => Promise<ReadonlySet<string> | null>;
  resources?: ResourceResolvers;
}

export type Verdict = 'ok' | 'UNAUTHORIZED' | 'FEATURE_DISABLED';

const grants = (permissions: ReadonlySet<string>, permission: string, wildcards: boolean): boolean =>
  permissions.has(permission) || (wildcards && permissions.has(`${permission.slice(0, permission.indexOf(':'))}:*`));

/**
 * Decides who may read or write a channel: gate first, then the flag, so that only who may ask learns whether a feature
 * is on.
 */
export class Gates {
  constructor(private readonly deps: GateDeps) {}

  /** May this caller subscribe? Source: spec doc3 §4.1, rulings c16, c27, c29. */
  async mayRead(caller: Caller, channel: string): Promise<Verdict> {
    const parsed = parseChannel(channel);
    if (!parsed) return 'UNAUTHORIZED';
    const { family, id } = parsed;
    const { gate } = family;
    if (gate.kind === 'public_when_feature') {
      return (await this.enabled(gate.flag, null)) && (await this.enabled(family.flag, null))
        ? 'ok'
        : 'FEATURE_DISABLED';
    }
    if (gate.kind === 'public') return (await this.enabled(family.flag, null)) ? 'ok' : 'FEATURE_DISABLED';
    if (caller.kind === 'anonymous') return 'UNAUTHORIZED';
    const resource = await this.resource(family, id, caller);
    if (!resource) return 'UNAUTHORIZED';
    if (!(await this.passes(family, resource, caller))) return 'UNAUTHORIZED';
    return (await this.enabled(family.flag, resource.account_id)) ? 'ok' : 'FEATURE_DISABLED';
  }

  /**
   * May this caller broadcast? Only on the families that say so; refused is `UNAUTHORIZED` (rulings "refused
   * broadcast").
   */
  async mayWrite(caller: Caller, channel: string): Promise<Verdict> {
    const parsed = parseChannel(channel);
    const permission = parsed?.family.write_permission;
    if (!parsed || permission === undefined || caller.kind === 'anonymous') return 'UNAUTHORIZED';
    if (!(await this.has(caller, permission, parsed.id))) return 'UNAUTHORIZED';
    return (await this.enabled(parsed.family.flag, parsed.id)) ? 'ok' : 'FEATURE_DISABLED';
  }

  private async resource(family: ChannelFamily, id: string, caller: Caller): Promise<ResolvedResource | null> {
    if (family.resource === null) return { account_id: '', bound: false, owned: false };
    if (family.resource === 'account') return { account_id: id, bound: false, owned: false };
    if (family.resource === 'presence') {
      // Whose the wrapped channel is; one that belongs to no account has no presence.
      const wrapped = parseChannel(id);
      const owned = wrapped !== null && wrapped.family.resource !== null && wrapped.family.resource !== 'presence';
      return owned ? this.resource(wrapped.family, wrapped.id, caller) : null;
    }
    return (await this.deps.resources?.[family.resource]?.(id, caller)) ?? null;
  }

  private async passes(family: ChannelFamily, resource: ResolvedResource, caller: Caller): Promise<boolean> {
    const { gate } = family;
    switch (gate.kind) {
      case 'authenticated':
        return true;
      case 'permission':
        // A token of one extension install reads that install's storage and no other's (c16).
        if (caller.kind === 'extension' && family.resource === 'extension_install') return resource.bound;
        return this.has(caller, gate.permission, resource.account_id);
      case 'account_scoped':
        return (await this.permissionsOn(caller, resource.account_id)) !== null;
      case 'user_permission':
        return caller.user_permissions.has(gate.permission);
      case 'bound_token':
        return (gate.callers as readonly string[]).includes(caller.kind) && resource.bound;
      case 'extension_owner':
        return resource.owned;
      default:
        return false;
    }
  }

  private async has(caller: Caller, permission: string, account_id: string): Promise<boolean> {
    const permissions = await this.permissionsOn(caller, account_id);
    return permissions !== null && grants(permissions, permission, caller.kind === 'system_key');
  }

  /**
   * What the caller may do on this account; null when it has nothing to do with it. System keys are bound to no
   * account.
   */
  private async permissionsOn(caller: Caller, account_id: string): Promise<ReadonlySet<string> | null> {
    if (caller.kind === 'system_key' || caller.account_id === account_id) return caller.permissions;
    return (await this.deps.permissions_on?.(caller, account_id)) ?? null;
  }

  private async enabled(flag: string | null, account_id: string | null): Promise<boolean> {
    return flag === null || this.deps.features.enabled(flag, account_id);
  }
}
