import type { FeatureFlags } from '../../../app/services';
import type { Logger } from '../../../engines/log/port';
import type { Forwards } from '../../../kernel/channel';
import { parsedJson } from '../../../lib/json/paths';
import { createMasks } from '../../../services/automation/modules/masks';
import type { Channel } from '../channel/channel';
import type { ChannelServices, Families, Family } from '../channel/family';
import type { Hub } from '../delivery/hub';
import type { Outbox } from '../delivery/outbox';
import { eventText } from '../relay/envelopes';
import { AccountPages } from './account-pages';
import type { MissedMessages } from './missed';

export interface ForwardingDeps {
  hub: Hub;
  families: Families;
  services: ChannelServices;
  features: FeatureFlags;
  open(channel: string): Promise<Channel>;
  outbox: Pick<Outbox, 'head' | 'page' | 'removals'>;
  log: Logger;
}

/** A channel that nobody subscribed to, or left, is kept this long. */
const LINGER_MS = 30_000;

const HOUR_MS = 3_600_000;
const hourOf = (now: number): number => Math.floor(now / HOUR_MS);

/** Forwards what pages draw from the channels of their accounts: one view of an account for all its pages. */
export class Forwarding {
  private readonly accounts = new Map<string, AccountPages>();
  /** Pages by their channels. */
  private readonly pages = new Map<string, { account: AccountPages; opened_at: number; hour: number }>();

  private readonly maskOf = createMasks(() => this.deps.services.db);

  constructor(private readonly deps: ForwardingDeps) {}

  /** Begins to forward to a channel; does nothing for one of another kind, or while it is forwarded to. */
  async open(channel: Channel): Promise<void> {
    const named = this.deps.families.of(channel.name);
    if (!named?.family.forwards) return;
    const known = this.pages.get(channel.name);
    if (known && channel.tap !== null) {
      known.opened_at = Date.now();
      return known.account.ready;
    }
    const forwards = await this.read(named.family, named.id);
    if (forwards === null || channel.gone) return;
    const account = this.account(forwards.account_id);
    await account.ready;
    if (channel.gone) return;
    // A source was lost before the page was known to the account.
    if (account.ended) return this.open(channel);
    account.pages.set(channel.name, forwards.types);
    channel.forwarded = account;
    this.pages.set(channel.name, { account, opened_at: Date.now(), hour: hourOf(Date.now()) });
    channel.tap = {
      // The message may change the drawn types.
      stored: () => void this.readAgain(channel, named.family, named.id, account),
      transient: () => undefined,
      gone: () => this.close(channel.name),
    };
  }

  /** Messages that subscribers of a page may have missed; null of a channel of another kind. */
  async missedBy(channel: Channel): Promise<MissedMessages | null> {
    return (await this.pages.get(channel.name)?.account.missedBy(channel)) ?? null;
  }

  /** Messages were erased: open pages remove them. Pages of an account that fails begin again. */
  async removeErased(): Promise<void> {
    for (const [account_id, account] of this.accounts) {
      try {
        await account.removeErased();
      } catch (error) {
        this.deps.log.error({ err: error, account_id }, 'pages could not remove what was erased');
        account.lose();
      }
    }
  }

  sweep(now: number): void {
    for (const [name, { opened_at }] of this.pages) {
      const channel = this.deps.hub.channels.get(name);
      if (channel && (channel.size > 0 || now - Math.max(opened_at, channel.empty_since) < LINGER_MS)) {
        this.renewAssets(channel, now);
        continue;
      }
      if (channel) channel.tap = channel.forwarded = null;
      this.close(name);
    }
    for (const account of this.accounts.values()) account.endIdle();
  }

  private read = (family: Family, id: string): Promise<Forwards | null> => family.forwards!(id, this.deps.services);

  private async readAgain(channel: Channel, family: Family, id: string, account: AccountPages): Promise<void> {
    try {
      const forwards = await this.read(family, id);
      const before = new Set(account.pages.get(channel.name)?.map(({ type }) => type));
      if (forwards !== null && account.pages.has(channel.name)) account.pages.set(channel.name, forwards.types);
      await this.sendAssets(channel, family, id);
      if (forwards?.types.some(({ type }) => !before.has(type))) await this.sendState(channel.name);
    } catch (error) {
      this.deps.log.warn({ err: error, channel: channel.name }, 'what a page draws could not be read');
      // Its subscribers come again, and then it is read.
      this.deps.hub.forget(channel, 'CHANNEL_DROPPED');
    }
  }

  /** Links end with the second hour after they are made. */
  private renewAssets(channel: Channel, now: number): void {
    const page = this.pages.get(channel.name);
    const named = this.deps.families.of(channel.name);
    if (!page || !named || page.hour === hourOf(now)) return;
    page.hour = hourOf(now);
    this.sendAssets(channel, named.family, named.id).catch((error: unknown) => {
      this.deps.log.warn({ err: error, channel: channel.name }, 'links to files of a page could not be made');
      this.deps.hub.forget(channel, 'CHANNEL_DROPPED');
    });
  }

  private async sendAssets(channel: Channel, family: Family, id: string): Promise<void> {
    this.sendOwn(channel.name, await family.assets?.(id, this.deps.services));
  }

  /** Sends a page the state of its account. */
  private async sendState(page: string): Promise<void> {
    const named = this.deps.families.of(page);
    this.sendOwn(page, await named?.family.state?.(named.id, this.deps.services));
  }

  private sendOwn(page: string, message: { event_type: string; data: string } | null | undefined): void {
    if (message) this.deps.hub.transient(page, eventText(page, message.event_type, message.data));
  }

  private account(account_id: string): AccountPages {
    let account = this.accounts.get(account_id);
    if (account === undefined) {
      const { hub, features, open, outbox } = this.deps;
      account = new AccountPages(account_id, {
        features,
        maskOf: this.maskOf,
        open,
        outbox,
        page: (name) => hub.channels.get(name),
        forward: (channel, text) => hub.forwarded(channel, text),
        send: (channel, text) => hub.transient(channel, text),
        sendState: (page) => this.sendState(page),
        // A source was lost: the pages have to begin again.
        lost: (pages) => this.drop(pages),
        ended: () => this.accounts.delete(account_id),
        log: this.deps.log,
        parsed: parsedJson,
      });
      this.accounts.set(account_id, account);
    }
    return account;
  }

  private drop(pages: readonly string[]): void {
    for (const name of pages) {
      const channel = this.deps.hub.channels.get(name);
      if (channel) this.deps.hub.forget(channel, 'CHANNEL_DROPPED');
      else this.close(name);
    }
  }

  private close(name: string): void {
    const page = this.pages.get(name);
    this.pages.delete(name);
    page?.account.leave(name);
  }
}
