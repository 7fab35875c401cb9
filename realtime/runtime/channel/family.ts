import type { Caller, CallerKind } from '../../../access/authentication/caller';
import type { FeatureFlags } from '../../../app/services';
import type { Logger } from '../../../engines/log/port';
import type { Queryable } from '../../../engines/postgres/port';
import { channelForm, type ChannelFamily, type ChannelForm, type ChannelSubscriber } from '../../../kernel/channel';
import type { PresenceRooms } from '../presence/presence-rooms';

/** As `GET /v1/emotes/{platform}/{channel_id}` answers. */
export interface ChannelPictures {
  sets: readonly object[];
  badges: readonly object[];
}

/** Services for the families of channels. */
export interface ChannelServices {
  db: Queryable;
  features: FeatureFlags;
  /** Path of a file that needs no credential for an hour at least. */
  fileLink(file: { kind: 'sound' | 'upload'; id: string; account_id: string }): Promise<string>;
  /** Emotes and badges of a channel; empty while its vendors fail. */
  pictures(platform: string, channel_id: string): Promise<ChannelPictures>;
  /** Null where presence is not kept. */
  rooms: PresenceRooms | null;
  /** Public state of a broadcast: JSON, null for an unknown or hidden one. */
  streamSnapshot(platform: string, broadcast_id: string): Promise<object | null>;
  log: Logger;
}

export type Family = ChannelFamily<Caller, CallerKind, ChannelServices>;
export type Subscriber = ChannelSubscriber<Caller>;

/** Declares a family of channels; what a file of this room's first level declares is served. */
export const channel = (family: Family): Family => family;

/** Owner of a channel bound to tokens: the account of the token; other callers get no owner. */
export const ofBoundToken =
  (prefix: string): NonNullable<Family['owner']> =>
  async (id, { account_id, bound_channel }) =>
    account_id !== null && bound_channel === `${prefix}:${id}` ? { account_id, bound: true, owned: false } : null;

/**
 * Owner of the page of an overlay or a widget: the account that `accountOf` finds for the user, from whom an access
 * entry may hide it.
 */
export const ofPage = (
  prefix: string,
  accountOf: (db: Queryable, id: string, user_id: string | null) => Promise<string | null>,
): NonNullable<Family['owner']> => {
  const ofToken = ofBoundToken(prefix);
  return async (id, caller, services) => {
    const bound = await ofToken(id, caller, services);
    if (bound !== null) return bound;
    const account_id = await accountOf(services.db, id, caller.user_id);
    return account_id === null ? null : { account_id, bound: false, owned: false };
  };
};

/** A channel by its name: the family it belongs to, and its id. */
export interface NamedChannel {
  family: Family;
  form: ChannelForm;
  id: string;
}

/** Every family there is. */
export class Families {
  private readonly byPrefix = new Map<string, { family: Family; form: ChannelForm }[]>();

  /** @throws Error when two families have one pattern */
  constructor(families: readonly Family[]) {
    for (const family of families) {
      const form = channelForm(family);
      const neighbours = this.byPrefix.get(form.prefix) ?? [];
      if (neighbours.some((other) => other.family.pattern === family.pattern))
        throw new Error(`the channel ${family.pattern} is declared twice`);
      this.byPrefix.set(form.prefix, [...neighbours, { family, form }]);
    }
  }

  /** Null for a name that no family has (gate "Unknown": always rejected). */
  of(name: string): NamedChannel | null {
    const colon = name.indexOf(':');
    if (colon <= 0) return null;
    const id = name.slice(colon + 1);
    const found = this.byPrefix.get(name.slice(0, colon))?.find(({ form }) => form.id.test(id));
    return found ? { ...found, id } : null;
  }

  /** The `type` of the stored messages of a channel. */
  messageType = (name: string): string => this.of(name)?.family.message_type ?? 'event';
}
