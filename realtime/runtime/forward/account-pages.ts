import type { FeatureFlags } from '../../../app/services';
import type { Logger } from '../../../engines/log/port';
import type { Forwards } from '../../../kernel/channel';
import type { Json } from '../../../lib/json/json';
import { Signal } from '../../../lib/async/signal';
import type { Mask } from '../../../services/automation/modules/masks';
import type { Channel, Places } from '../channel/channel';
import type { Outbox } from '../delivery/outbox';
import { eventText, storedMessageText } from '../relay/envelopes';
import { LOOKED_BACK, MissedMessages, type Track } from './missed';
import { removalsIn } from './removals';
import { SOURCES, type Drawn, type Source } from './sources';

export interface AccountPagesDeps {
  features: FeatureFlags;
  maskOf(account_id: string): Promise<Mask> | Mask;
  open(channel: string): Promise<Channel>;
  outbox: Pick<Outbox, 'head' | 'page' | 'removals'>;
  /** The channel of a page. */
  page(name: string): Channel | undefined;
  /** Sends a message of a source to those of a page who are live. */
  forward(page: Channel, text: string): void;
  /** Sends a message that is not stored. */
  send(page: string, text: string): void;
  /** Sends a page the state of its account. */
  sendState(page: string): Promise<void>;
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
  /** Null of a message that is not stored. */
  seq: number | null;
}

/** State of the account that decides over a message. */
interface Passage {
  /** Flags that are on. */
  on: ReadonlySet<string>;
  /** Masks the filtered words of the account. */
  mask: Mask;
}

/** Messages that wait for flags or filtered words; beyond, the pages begin again. */
const MAX_WAITING = 1_000;

/** The pages of one account on this node, and the channels whose messages they draw. */
export class AccountPages {
  /** Types that each page draws, by the page's channel. */
  readonly pages = new Map<string, Forwards['types']>();
  /** Settles when every source is listened to. */
  readonly ready: Promise<void>;
  ended = false;
  /** Seqs of the last messages of the sources that were forwarded, or that no page draws. */
  places: Places = SOURCES.map(() => 0);
  private readonly moved = new Signal();
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
      this.move(source, channel.seq);
      channel.tap = {
        stored: ({ event_type, data, seq }) => this.arrived({ source, event_type, data, seq }),
        transient: (text) => this.arrived({ source, event_type: '', data: text, seq: null }),
        gone: () => this.lose(),
      };
    }
    this.listening = true;
  }

  private arrived(message: Arrived): void {
    if (this.pages.size === 0 && !this.working) return this.pass(message);
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

  /** Waits only when a flag or the filtered words have to be looked up. */
  private forward(message: Arrived): Promise<void> | null {
    const { source } = message;
    const types = [...this.pages.values()].flat().filter(({ type }) => source.drawn_by.has(type));
    if (types.length === 0) {
      this.pass(message);
      return null;
    }
    const passage = this.passage(source, types);
    if (passage instanceof Promise) return passage.then((found) => this.send(message, found));
    this.send(message, passage);
    return null;
  }

  private passage(source: Source, types: Forwards['types']): Passage | Promise<Passage> {
    const on = this.flagsOn(source, types);
    const mask = this.deps.maskOf(this.account_id);
    if (!(on instanceof Promise) && typeof mask === 'function') return { on, mask };
    return Promise.all([on, mask]).then(([flags, found]) => ({ on: flags, mask: found }));
  }

  /** Flags that are on, of a source and of types that draw it. */
  private flagsOn(source: Source, types: Forwards['types']): ReadonlySet<string> | Promise<ReadonlySet<string>> {
    const flags = [...new Set([source.flag, ...types.flatMap(({ flag }) => (flag === null ? [] : [flag]))])];
    const answers = flags.map((flag) => this.deps.features.enabled(flag, this.account_id));
    if (answers.every((answer) => typeof answer === 'boolean'))
      return new Set(flags.filter((_flag, index) => answers[index]));
    return Promise.all(answers.map(async (answer) => answer)).then(
      (on) => new Set(flags.filter((_flag, index) => on[index])),
    );
  }

  private send(message: Arrived, passage: Passage): void {
    if (passage.on.has(message.source.flag)) this.sendDrawn(message, passage);
    this.pass(message);
  }

  private sendDrawn({ source, event_type, data, seq }: Arrived, { on, mask }: Passage): void {
    const parsed = this.deps.parsed(data);
    const sent = seq === null ? messageOf(parsed) : { event_type, data: parsed };
    const drawn = sent === null ? null : source.drawn({ ...sent, is_stored: seq !== null }, mask);
    if (drawn === null) return;
    const places = seq === null ? null : this.placesAfter(source, seq);
    for (const [page, types] of this.pages) if (draws(types, source, on)) this.sendTo(page, drawn, places);
  }

  /** `places`: the sources after the message; null of one that is not stored. */
  private sendTo(page: string, { event_type, data }: Drawn, places: Places | null): void {
    if (places === null) return this.deps.send(page, eventText(page, event_type, data));
    const channel = this.deps.page(page);
    if (channel === undefined) return;
    const { message_type, seq } = channel;
    this.deps.forward(
      channel,
      storedMessageText(message_type, channel.idAt(seq, places), { channel: page, event_type, data }),
    );
  }

  private placesAfter(source: Source, seq: number): Places {
    const at = SOURCES.indexOf(source);
    return this.places.map((place, index) => (index === at ? seq : place));
  }

  /** The message is behind every page. */
  private pass({ source, seq }: Arrived): void {
    if (seq !== null) this.move(source, seq);
  }

  private move(source: Source, seq: number): void {
    this.places = this.placesAfter(source, seq);
    this.moved.raise();
  }

  /** Messages that a page missed, of its own channel and of the sources that it draws. */
  async missedBy(page: Channel): Promise<MissedMessages> {
    const own: Track = {
      name: page.name,
      at: () => page.seq,
      reached: (seq, ms) => page.reached(seq, ms),
      drawn: ({ event_type, data }) => ({ event_type, data }),
    };
    const types = this.pages.get(page.name) ?? [];
    const tracks = await Promise.all(SOURCES.map((source, index) => this.track(source, index, types)));
    return new MissedMessages([own, ...tracks], page, this.deps.outbox);
  }

  private async track(source: Source, index: number, types: Forwards['types']): Promise<Track> {
    const { on, mask } = await this.passage(source, types);
    const is_drawn = draws(types, source, on);
    return {
      name: source.channel(this.account_id),
      at: () => this.places[index]!,
      reached: (seq, ms) => this.reached(index, seq, ms),
      drawn: is_drawn
        ? ({ event_type, data }) => source.drawn({ event_type, data: this.deps.parsed(data), is_stored: true }, mask)
        : null,
      erased: source.erased,
    };
  }

  private async reached(index: number, seq: number, ms: number): Promise<boolean> {
    const ends_at = performance.now() + ms;
    const left_ms = () => Math.ceil(ends_at - performance.now());
    while (this.places[index]! < seq && !this.ended && left_ms() > 0) await this.moved.wait(left_ms());
    return this.places[index]! >= seq;
  }

  /** Messages were erased: the pages remove those that they may show. */
  async removeErased(): Promise<void> {
    for (const [index, source] of SOURCES.entries()) {
      const types = [...this.pages.values()].flat();
      if (source.erased === undefined || !draws(types, source, await this.flagsOn(source, types))) continue;
      const name = source.channel(this.account_id);
      const removals = removalsIn(
        await this.deps.outbox.removals(name, Math.max(0, this.places[index]! - LOOKED_BACK)),
      );
      for (const id of removals.erased.keys())
        for (const [page, drawn] of this.pages)
          if (drawn.some(({ type }) => source.drawn_by.has(type)))
            this.deps.send(page, eventText(page, source.erased, JSON.stringify({ id })));
    }
    const labelled = SOURCES.filter(({ has_labels }) => has_labels);
    for (const [page, drawn] of this.pages)
      if (drawn.some(({ type }) => labelled.some(({ drawn_by }) => drawn_by.has(type))))
        await this.deps.sendState(page);
  }

  /** The pages have to begin again. */
  lose(): void {
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

/** Whether some of the types draw the source, by the flags that are on. */
const draws = (types: Forwards['types'], source: Source, on: ReadonlySet<string>): boolean =>
  on.has(source.flag) && types.some(({ type, flag }) => source.drawn_by.has(type) && (flag === null || on.has(flag)));

/** The event type and the data of a server message that is not stored. */
function messageOf(message: Json): { event_type: string; data: Json } | null {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return null;
  const { event_type, data = null } = message;
  return typeof event_type === 'string' ? { event_type, data } : null;
}
