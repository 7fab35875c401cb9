import type { ZodType } from 'zod';
import { UUID } from '../lib/hash/uuid';

/** Owner of a channel, and the relation of the caller's token to it. */
export interface ChannelOwner {
  account_id: string;
  /** The caller's token was issued for this one resource. */
  bound: boolean;
  /** The caller owns it or belongs to the team that does (extensions). */
  owned: boolean;
}

/** Rule that admits subscribers. Kinds and meanings: spec doc3 §4.1, "Channels, gates and feature flags". */
export type Gate<Kind extends string = string> =
  | { kind: 'public' }
  /** Anybody, while the system flag is on; `FEATURE_DISABLED` when it is off. */
  | { kind: 'public_when_feature'; flag: string }
  | { kind: 'authenticated' }
  /**
   * The permission on the channel's account. A caller of the kind `bound` passes by its token's being bound to the
   * resource instead, and by nothing else.
   */
  | { kind: 'permission'; permission: string; bound?: Kind }
  /** Any credential of the account, but for those of pages of overlays and widgets. */
  | { kind: 'account_scoped' }
  /** Any credential of the account. */
  | { kind: 'account_and_pages' }
  | { kind: 'user_permission'; permission: string }
  /** The user of the channel's `<user_id>` themselves, by a session or a key of their own. */
  | { kind: 'own_user' }
  /** A token of one of these kinds, bound to exactly this resource. */
  | { kind: 'bound_token'; callers: readonly Kind[] }
  | { kind: 'extension_owner' };

export const publicAlways: Gate<never> = { kind: 'public' };
export const publicWhen = (flag: string): Gate<never> => ({ kind: 'public_when_feature', flag });
export const accountScoped: Gate<never> = { kind: 'account_scoped' };
export const accountAndPages: Gate<never> = { kind: 'account_and_pages' };
export const extensionOwner: Gate<never> = { kind: 'extension_owner' };
export const ownUser: Gate<never> = { kind: 'own_user' };
export const permission = <Kind extends string = never>(name: string, bound?: Kind): Gate<Kind> => ({
  kind: 'permission',
  permission: name,
  ...(bound && { bound }),
});
export const boundToken = <Kind extends string>(...callers: readonly Kind[]): Gate<Kind> => ({
  kind: 'bound_token',
  callers,
});

/** Messages of a channel under one `event_type`. */
export interface CarriedMessage {
  /** A sentence for subscribers. */
  readonly summary: string;
  /** The shape of `data`. Documents and the client's types are made of it; nothing is checked against it. */
  readonly data: ZodType;
}

/** A family of channels as its area declares it. Source: spec doc3 §4.1. */
export interface ChannelFamily<Caller, Kind extends string, Services> {
  /**
   * `events:<account_id>`: what is in angle brackets varies, in the form that `ids` gives it. `<account_id>` is a UUID
   * and names the account whose the channel is.
   */
  readonly pattern: string;
  /** Content of the channels: a sentence for subscribers. */
  readonly summary: string;
  /** The messages, by `event_type`; `*` stands for every other. */
  readonly carries: Readonly<Record<string, CarriedMessage>>;
  /** Forms of the other parts that vary. Default: up to 128 letters, digits, dots, underscores, tildes and hyphens. */
  readonly ids?: Readonly<Record<string, RegExp>>;
  /**
   * Finds the owner of the channel with this id, where the id is not an account's; null when there is no such thing.
   * Without it the channels of the family have no owner. `services.ownerOf` finds the owner of another channel.
   */
  owner?(id: string, caller: Caller, services: OwnerServices<Services>): Promise<ChannelOwner | null>;
  readonly gate: Gate<Kind>;
  /** Checked against the channel's account (`feature:*`) or the installation (`system:*`); null: none. */
  readonly flag: string | null;
  /** The permission that a client's broadcast takes; absent: clients may not broadcast. */
  readonly writable?: string;
  /** The `type` of the family's stored messages where it is not `event` (doc3 §6.3). */
  readonly message_type?: string;
  /**
   * Messages that are forwarded to the channel from its account's other channels: the types that it draws. Read when
   * somebody subscribes, and after each stored message of the channel; null: there is no such thing.
   */
  forwards?(id: string, services: Services): Promise<Forwards | null>;
  /**
   * Message with links to the files that the channel draws, sent to its subscribers each hour, before the links end,
   * and after each stored message of the channel; null: there is no such thing.
   */
  assets?(id: string, services: Services): Promise<{ event_type: string; data: string } | null>;
  /**
   * Message with the state of the account that the channel draws, sent to its subscribers after an erasure, and after a
   * change by which it draws more types; null: there is no such thing.
   */
  state?(id: string, services: Services): Promise<{ event_type: string; data: string } | null>;
  /**
   * First messages of a new subscriber, after `subscribed`; they go to that subscriber alone. A failure ends the
   * subscription with `SUBSCRIBE_FAILED`.
   */
  bootstrap?(subscriber: ChannelSubscriber<Caller>, services: Services): void | Promise<void>;
}

/** Content of a channel that is forwarded from other channels. */
export interface Forwards {
  account_id: string;
  /** Types that draw it, each with the flag that it needs. */
  types: readonly { type: string; flag: string | null }[];
}

export type OwnerServices<Services> = Services & { ownerOf(channel: string): Promise<ChannelOwner | null> };

/** A connection on a channel. */
export interface ChannelSubscriber<Caller> {
  /** Of the connection. */
  readonly id: string;
  readonly channel: string;
  /** Variable part of the pattern: the channel without its prefix. */
  readonly channel_id: string;
  readonly caller: Caller;
  /** `data` is JSON text. Nothing is sent once the subscription has ended. */
  send(event_type: string, data: string): void;
  /** Sends a framed message, so that a message to several subscribers is framed once. */
  sendFrame(bytes: Buffer): void;
}

const KEY = /[A-Za-z0-9._~-]{1,128}/;

/** A pattern taken apart. */
export interface ChannelForm {
  prefix: string;
  /** Matches the whole text after `prefix:`. */
  id: RegExp;
  /** The id is an account's. */
  of_account: boolean;
}

/**
 * Reads a family's pattern.
 * @throws Error when it has no prefix, or `ids` names what the pattern has not
 */
export function channelForm({ pattern, ids = {} }: { pattern: string; ids?: Readonly<Record<string, RegExp>> }) {
  const colon = pattern.indexOf(':');
  if (!/^[a-z][a-z-]*$/.test(pattern.slice(0, Math.max(colon, 0)))) throw new Error(`${pattern} has no prefix`);
  const rest = pattern.slice(colon + 1);
  const names = [...rest.matchAll(/<([a-z_]+)>/g)].map(([, name]) => name!);
  const stray = Object.keys(ids).find((name) => !names.includes(name));
  if (stray !== undefined) throw new Error(`${pattern} has no <${stray}>`);
  const formOf = (name: string) => (ids[name] ?? (name === 'account_id' ? UUID : KEY)).source.replace(/^\^|\$$/g, '');
  const source = rest.replace(/<([a-z_]+)>/g, (_all, name: string) => `(?:${formOf(name)})`);
  return { prefix: pattern.slice(0, colon), id: new RegExp(`^${source}$`), of_account: rest === '<account_id>' };
}
