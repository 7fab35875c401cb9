import type { Blobs } from '../engines/blobs/port';
import type { Ends } from '../engines/broker/port';
import type { AppendResult, EventStore, Metadata, StreamWrite } from '../engines/event-store/port';
import type { Database } from '../engines/postgres/port';
import type { RecordLog } from '../engines/records/port';
import type { Relay } from '../engines/relay/port';
import type { SecretBox } from '../engines/secrets/port';
import type { Cache } from '../engines/cache/port';
import type { PersonalTexts } from '../engines/subject-keys/port';
import type { AccountRights } from './account-rights';
import type { Caller, RequestContext, Written } from './caller';
import type { AccessChanges } from './changes';
import type { Settings } from '../kernel/settings';
import type { Tokens } from './tokens';
import type { OAuthVendor } from '../vendors/oauth/port';
import type { IdentityProvider } from '../vendors/login/port';

/** How long a wait for read models may last: until the earlier of the two. */
export interface WaitBound {
  /** Default: the setting's, 2 s. */
  within_ms?: number | undefined;
  /** By `performance.now()`. Default: whenever. */
  until?: number | undefined;
}

/** Waits until read models have caught up; bounded, and tells whether they had. */
export interface ReadModels {
  /** True when every projection named has passed `position` within the bound. */
  passed(position: string, projections: readonly string[], bound?: WaitBound): Promise<boolean>;
  /** True when every projection named has applied the records of `topic` before these ends, within the bound. */
  applied(topic: string, ends: Ends, projections: readonly string[]): Promise<boolean>;
}

/** Feature flags as one account sees them. */
export interface FeatureFlags {
  /** A promise only where it has to be looked up. */
  enabled(flag: string, account_id: string | null): Promise<boolean> | boolean;
}

/** Messages for WebSocket channels that are broadcast and never stored. */
export interface LiveMessages {
  /** `message` is the whole server message (`{type, channel, event_type, data}`). */
  broadcast(channel: string, message: unknown): Promise<void>;
}

/** What operations may use; put together by the front door, the same on every engine. */
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
  secrets: SecretBox;
  /** Texts under the keys of their persons. */
  texts: PersonalTexts;
  /** Signs and checks JWTs. */
  tokens: Tokens;
  /** Who somebody is at a login provider; only those that are set up. */
  logins: ReadonlyMap<string, IdentityProvider>;
  /** How channels and bots are connected at a vendor, by its slug. */
  oauth: ReadonlyMap<string, OAuthVendor>;
  /** Where a command says that a credential, membership or feature changed. */
  access: AccessChanges;
  /** Metadata for events appended on behalf of this caller. */
  metadata(caller: Caller, context: RequestContext): Metadata;
  /**
   * Waits until every read model that reads these event types, or that is named for these records, has what was
   * written (read your own writes); sets the response's `X-Lumio-Read-Model: behind` when one lags.
   */
  awaitShown(context: RequestContext, written: Written): Promise<void>;
  /** Appends, says so, and waits as {@link awaitShown} does. */
  commit(
    request: { caller: Caller; context: RequestContext },
    writes: readonly StreamWrite[],
    onAppended?: () => void,
  ): Promise<AppendResult>;
}
