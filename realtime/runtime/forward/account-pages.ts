import type { FeatureFlags } from '../../../app/services';
import type { Logger } from '../../../engines/log/port';
import type { Forwards } from '../../../kernel/channel';
import type { Json } from '../../../lib/json/json';
import type { Channel } from '../channel/channel';
import { eventText } from '../relay/envelopes';
import { SOURCES, type Source } from './sources';

export interface AccountPagesDeps {
  features: FeatureFlags;
  open(channel: string): Promise<Channel>;
  send(channel: string, text: string): void;
  /** A source was lost. */
  lost(pages: readonly string[]): void;
  ended(): void;
  log: Logger;
  parsed(text: string): Json;
}

interface Arrived {
  source: Source;
  event_type: string;
  data: string;
  is_stored: boolean;
}

/** Messages that wait for the answer about a flag; beyond, the pages begin again. */
const MAX_WAITING = 1_000;

/** The pages of one account on this node, and the channels whose messages they draw. */
export class AccountPages {
  /** Types that each page draws, by the page's channel. */
  readonly pages = new Map<string, Forwards['types']>();
  /** Settles when every source is listened to. */
  readonly ready: Promise<void>;
  ended = false;
  private readonly tapped: Channel[] = [];
  private readonly waiting: Arrived[] = [];
  private working = false;
  private listening = false;

  constructor(
    private readonly account_id: string,
    private readonly deps: AccountPagesDeps,
  ) {
    this.ready = this.listen();
    // Callers that wait for it get the failure.
    this.ready.catch(() => this.end());
  }

  /** The account has no page here any more once the last has left. */
  leave(page: string): void {
    this.pages.delete(page);
    if (this.pages.size === 0) this.end();
  }

  /** Ends the account whose only page went before it was known here. */
  endIdle(): void {
    if (this.listening && this.pages.size === 0) this.end();
  }

  private async listen(): Promise<void> {
    for (const source of SOURCES) {
      const channel = await this.deps.open(source.channel(this.account_id));
      if (this.ended) return;
      this.tapped.push(channel);
      channel.tap = {
        stored: ({ event_type, data }) => this.arrived({ source, event_type, data, is_stored: true }),
        transient: (text) => this.arrived({ source, event_type: '', data: text, is_stored: false }),
        gone: () => this.lose(),
      };
    }
    this.listening = true;
  }

  private arrived(message: Arrived): void {
    if (this.pages.size === 0) return;
    if (this.waiting.length >= MAX_WAITING) return this.lose();
    this.waiting.push(message);
    if (!this.working) void this.work();
  }

  private async work(): Promise<void> {
    this.working = true;
    try {
      for (let next = this.waiting.shift(); next !== undefined; next = this.waiting.shift()) {
        const pending = this.forward(next);
        if (pending !== null) await pending;
      }
    } catch (error) {
      this.deps.log.warn({ err: error, account_id: this.account_id }, 'a message could not be forwarded to pages');
      this.lose();
    } finally {
      this.working = false;
    }
  }

  /** Waits only when a flag has to be looked up. */
  private forward(message: Arrived): Promise<void> | null {
    const { source } = message;
    const types = [...this.pages.values()].flat().filter(({ type }) => source.drawn_by.has(type));
    if (types.length === 0) return null;
    const flags = [...new Set([source.flag, ...types.flatMap(({ flag }) => (flag === null ? [] : [flag]))])];
    const answers = flags.map((flag) => this.deps.features.enabled(flag, this.account_id));
    if (answers.every((answer) => typeof answer === 'boolean')) {
      this.send(message, new Set(flags.filter((_flag, index) => answers[index])));
      return null;
    }
    return Promise.all(answers.map(async (answer) => answer)).then((on) =>
      this.send(message, new Set(flags.filter((_flag, index) => on[index]))),
    );
  }

  private send({ source, event_type, data, is_stored }: Arrived, on: ReadonlySet<string>): void {
    if (!on.has(source.flag)) return;
    const parsed = this.deps.parsed(data);
    const message = is_stored ? { event_type, data: parsed } : messageOf(parsed);
    const drawn = message === null ? null : source.drawn(message.event_type, message.data, is_stored);
    if (drawn === null) return;
    for (const [page, types] of this.pages) {
      const draws = types.some(({ type, flag }) => source.drawn_by.has(type) && (flag === null || on.has(flag)));
      if (draws) this.deps.send(page, eventText(page, drawn.event_type, drawn.data));
    }
  }

  private lose(): void {
    const pages = [...this.pages.keys()];
    this.end();
    this.deps.lost(pages);
  }

  private end(): void {
    if (this.ended) return;
    this.ended = true;
    this.waiting.length = 0;
    for (const channel of this.tapped) channel.tap = null;
    this.deps.ended();
  }
}

/** The event type and the data of a server message that is not stored. */
function messageOf(message: Json): { event_type: string; data: Json } | null {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return null;
  const { event_type, data = null } = message;
  return typeof event_type === 'string' ? { event_type, data } : null;
}
