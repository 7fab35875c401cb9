import type { ChannelEmotes } from '../../../services/chat/emotes';
import type { ConnectedAccount, ConnectionLookup } from '../../../services/connections/connections';
import type { RecordEnvelope, Topic } from '../../../domain/common/records';
import type { Vendor } from '../../../domain/common/vendors';
import type { Logger } from '../../../engines/log/port';
import type { RecordLog } from '../../../engines/records/port';
import type { FirstSubscriptions } from '../../kick/first-subscriptions';
import { failureKind } from '../../../kernel/failures';
import { envelopeOf } from '../parse/envelope';
import { storageLimitViolation } from '../parse/storage-limits';
import { withPictures } from '../parse/chat-pictures';
import { candidatesOf, type FirstMessageCandidate, type FirstMessages } from '../parse/first-messages';
import { park, type DraftRecord, type Outcome } from './webhook';

export type Stored =
  | { kind: 'stored'; records: number }
  | { kind: 'skip'; reason: string; detail?: string }
  | (Outcome & { kind: 'park' });

export interface IntakeDeps {
  connections: ConnectionLookup;
  records: RecordLog;
  /** Default: no events of first messages. */
  first_messages?: FirstMessages;
  /** Default: no emotes of third parties and no pictures of badges. */
  emotes?: Pick<ChannelEmotes, 'known'>;
  /** Default: on a channel without subscription ids every subscription counts. */
  first_subscriptions?: FirstSubscriptions;
  log: Logger;
  /**
   * True while the read model of connections lacks events of its log: an unknown account may then be a known one.
   * Default: never.
   */
  connectionsBehind?: () => Promise<boolean>;
}

/**
 * Header of a parked delivery with the verdict of {@link Verified}, because its signature is not stored. A sender's
 * header of this name is dropped.
 */
export const ID_SIGNED = 'lumio-id-signed';
/** Path of the webhook of a parked delivery, where it is not the vendor's usual one. */
export const TAKEN_AT = 'lumio-webhook';

/** Reads a verified delivery with its vendor's normaliser, and stores it for each account that it is about. */
export function createIntake(deps: IntakeDeps) {
  const { connections, records, first_messages, first_subscriptions, emotes, log, connectionsBehind } = deps;
  return { normalise, store, ofNobody };

  /** An exception of a normaliser means an unforeseen payload: a dead letter, not an outage. */
  function normalise(vendor: Vendor, read: () => Outcome, log_facts: object = {}): Outcome {
    try {
      return read();
    } catch (error) {
      log.error({ vendor, err: error, ...log_facts }, 'the normaliser of a vendor failed');
      return park('normaliser_failed', error instanceof Error ? error.message : 'unknown error');
    }
  }

  /**
   * Appends one record for each account that the drafts belong to.
   * @throws the error of the lookup or the log, unless the payload itself caused it
   */
  async function store(drafts: readonly DraftRecord[], received_at: number, trace: string | null): Promise<Stored> {
    const excess = storageLimitViolation(drafts);
    if (excess !== null) return { kind: 'park', ...excess };
    const topics = new Map<Topic, RecordEnvelope[]>();
    const candidates: FirstMessageCandidate[] = [];
    let reason = 'unknown_account';
    for (const draft of drafts) {
      const accounts = await accountsOf(draft.owner);
      if (accounts === FOREIGN) reason = 'unknown_subscription';
      const complete = accounts.length === 0 ? draft : withPictures(draft, emotes);
      for (const { account_id } of accounts) {
        const envelope = envelopeOf(complete, account_id, received_at, trace);
        candidates.push(...candidatesOf(draft, { account_id, received_at, trace }));
        const listed = topics.get(draft.topic);
        if (listed) listed.push(envelope);
        else topics.set(draft.topic, [envelope]);
      }
    }
    if (topics.size === 0) {
      const detail = nameOf(drafts[0]!.owner);
      if (reason === 'unknown_account' && (await connectionsBehind?.()))
        return { kind: 'park', reason: CONNECTIONS_BEHIND, detail };
      return { kind: 'skip', reason, detail };
    }
    const stored_firsts = await first_messages?.announce(candidates);
    let count = 0;
    for (const [topic, envelopes] of topics) {
      try {
        await records.append(topic, envelopes);
      } catch (error) {
        // The same record would always fail; other errors may pass.
        if (failureKind(error) !== 'data') throw error;
        return { kind: 'park', reason: 'not_storable', detail: (error as Error).message };
      }
      count += envelopes.length;
    }
    stored_firsts?.();
    return { kind: 'stored', records: count };
  }

  /**
   * True for a parked delivery whose owner belongs to no account.
   * @throws the error of the lookup
   */
  async function ofNobody(outcome: Outcome): Promise<boolean> {
    return outcome.kind === 'park' && outcome.owner !== undefined && (await accountsOf(outcome.owner)).length === 0;
  }

  async function accountsOf(owner: DraftRecord['owner']): Promise<readonly { account_id: string }[]> {
    if (owner.kind === 'channel') return connectedTo(owner);
    if (owner.kind === 'account') return [owner];
    const account = await connections.byShopDomain(owner.shop_domain);
    return account === null ? [] : [account];
  }

  async function connectedTo(owner: ChannelOwner) {
    const { platform, channel_id, subscription_id } = owner;
    const remembered = await connections.byChannel(platform, channel_id);
    if (subscription_id === undefined || remembered.length === 0) return remembered;
    const subscribed = remembered.filter(subscribedWith(subscription_id));
    if (subscribed.length > 0) return counted(owner, subscribed);
    // The subscription may be newer than the cached one.
    const stored = await connections.readByChannel(platform, channel_id);
    const now_subscribed = stored.filter(subscribedWith(subscription_id));
    return now_subscribed.length > 0 ? counted(owner, now_subscribed) : FOREIGN;
  }

  /** Leaves out accounts without ids of their own, unless the subscription was the first of its type. */
  async function counted(owner: ChannelOwner, accounts: readonly ConnectedAccount[]) {
    const { channel_id, subscription_id, subscription_type } = owner;
    const asked = first_subscriptions !== undefined && accounts.some(({ subscriptions }) => subscriptions === null);
    if (!asked || !subscription_id || subscription_type === undefined) return accounts;
    if (await first_subscriptions.counts(channel_id, subscription_type, subscription_id)) return accounts;
    const own = accounts.filter(({ subscriptions }) => subscriptions !== null);
    return own.length > 0 ? own : FOREIGN;
  }
}

type ChannelOwner = DraftRecord['owner'] & { kind: 'channel' };

/** Reason of a letter whose channel no account has connected, according to a late read model of connections. */
export const CONNECTIONS_BEHIND = 'connections_behind';

/** The channel is connected, but no account has this subscription: another app made it. */
const FOREIGN: readonly ConnectedAccount[] = [];

const subscribedWith =
  (subscription_id: string | null) =>
  ({ subscriptions }: ConnectedAccount): boolean =>
    subscriptions === null || (subscription_id !== null && subscriptions.includes(subscription_id));

function nameOf(owner: DraftRecord['owner']): string {
  switch (owner.kind) {
    case 'shop':
      return owner.shop_domain;
    case 'channel':
      return owner.channel_id;
    case 'account':
      return owner.account_id;
  }
}
