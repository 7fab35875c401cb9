import type { Blobs } from '../engines/blobs/port';
import type { Ends } from '../engines/broker/port';
import type { AppendResult, EventStore, Metadata, StreamWrite } from '../engines/event-store/port';
import type { Database } from '../engines/postgres/port';
import type { RecordLog } from '../engines/records/port';
import type { Relay } from '../engines/relay/port';
import type { SecretBox } from '../privacy/secrets/port';
import type { Cache } from '../engines/cache/port';
import type { PersonalTexts, SubjectKeys } from '../privacy/subject-keys/port';
import type { AccountRights } from '../access/authorization/account-rights';
import type { Caller, RequestContext, Written } from '../access/authentication/caller';
import type { AccessInvalidation } from '../access/authentication/access-invalidation';
import type { ConnectionTokens } from '../services/connections/connection-tokens';
import type { ChannelEmotes } from '../services/chat/emotes';
import type { ProfileBreakers } from '../services/chat/profile-breakers';
import type { ErasedChats } from '../kernel/eraser';
import type { JobRequest } from '../kernel/job';
import type { Settings } from '../kernel/settings/settings';
import type { Tokens } from '../access/authentication/tokens/jwt';
import type { ChatVendors } from '../vendors/chat/port';
import type { DiscordRest } from '../vendors/discord/port';
import type { OAuthVendor } from '../vendors/oauth/port';
import type { IdentityProvider } from '../vendors/login/port';

/** Bounds of a wait for read models; the earlier one applies. */
export interface WaitBound {
  /** Default: the setting, 2 s. */
  within_ms?: number | undefined;
  /** By `performance.now()`. Default: none. */
  until?: number | undefined;
}

/** Waits for read models to catch up, within a bound; the result states whether they did. */
export interface ReadModels {
  /** True when every named projection has passed `position` within the bound. */
  passed(position: string, projections: readonly string[], bound?: WaitBound): Promise<boolean>;
  /** True when every named projection has applied the records of `topic` before these ends, within the bound. */
  applied(topic: string, ends: Ends, projections: readonly string[]): Promise<boolean>;
}

/** Feature flags of accounts. */
export interface FeatureFlags {
  /** Returns a promise only when a look-up is needed. */
  enabled(flag: string, account_id: string | null): Promise<boolean> | boolean;
}

/** Messages for WebSocket channels that are broadcast and never stored. */
export interface LiveMessages {
  /** `message` is the whole server message (`{type, channel, event_type, data}`). */
  broadcast(channel: string, message: unknown): Promise<void>;
}

/** Services of operations; created by the front door, the same on every engine. */
export interface Services {
  settings: Settings;
  db: Database;
  events: EventStore;
  records: RecordLog;
  relay: Relay;
  cache: Cache;
  blobs: Blobs;
  read_models: ReadModels;
  features: FeatureFlags;
  /** Rights on an account that a request names. */
  accounts: AccountRights;
  live: LiveMessages;
  /** Enqueues jobs for what no projection or reactor reads, each key once. */
  enqueue(requests: readonly JobRequest[]): Promise<void>;
  secrets: SecretBox;
  /** Encrypts and decrypts personal text with the key of the data subject. */
  texts: PersonalTexts;
  /** Keyed hashes of personal texts, by which sealed ones are found. */
  hashes: Pick<SubjectKeys, 'hashesOf'>;
  /** Signs and checks JWTs. */
  tokens: Tokens;
  /** Identity providers for logins; only the configured ones. */
  logins: ReadonlyMap<string, IdentityProvider>;
  /** OAuth vendors for connecting channels and bots, by slug. */
  oauth: ReadonlyMap<string, OAuthVendor>;
  /** Calls to the chats of platforms. */
  chat: ChatVendors;
  /** Calls of Discord in the bot's name. */
  discord: DiscordRest;
  /** Emotes of channels. */
  emotes: ChannelEmotes;
  /** Breakers of look-ups of people at their platforms. */
  profile_breakers: ProfileBreakers;
  /** Access tokens of connections. */
  connection_tokens: ConnectionTokens;
  /** Takes units of YouTube's quota for a call besides reading; false where the day has none left for such calls. */
  spendYoutube(client_id: string, units: number): Promise<boolean>;
  /** Erases persons (`twitch:123`) from the chats of all accounts, for good. */
  eraseChats(subjects: readonly string[]): Promise<ErasedChats>;
  /** Announces changes of credentials, memberships and features. */
  access: AccessInvalidation;
  /** Metadata for events appended on behalf of this caller. */
  metadata(caller: Caller, context: RequestContext): Metadata;
  /**
   * Waits until every read model of these event types, or named for these records, has applied the write (read your own
   * writes); sets the response's `X-Lumio-Read-Model: behind` when one lags.
   */
  awaitShown(context: RequestContext, written: Written): Promise<void>;
  /** Appends, calls `onAppended`, and waits as {@link awaitShown} does. */
  commit(
    request: { caller: Caller; context: RequestContext },
    writes: readonly StreamWrite[],
    onAppended?: () => void,
  ): Promise<AppendResult>;
}
