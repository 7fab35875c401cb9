import type { Channel, Places } from '../channel/channel';
import type { Outbox, PageBounds } from '../delivery/outbox';
import { eventText, missedMessageText, storedMessageText, type StoredMessage } from '../relay/envelopes';
import { removalsIn, type Removals } from './removals';
import type { Drawn } from './sources';

const PAGE: PageBounds = { messages: 128, bytes: 256 * 1024 };
/** How long a client that was on a node ahead of this one waits until this one has come as far. */
const CATCH_UP_MS = 10_000;
/** Messages before a place of which a page may still show some; those erased since are removed. */
export const LOOKED_BACK = 200;

/** A channel whose messages a page has. */
export interface Track {
  name: string;
  /** How far it is on this node. */
  at(): number;
  reached(seq: number, ms: number): Promise<boolean>;
  /** A message as the page has it; null where the page draws nothing of the channel. */
  drawn: ((message: StoredMessage) => Drawn | null) | null;
  /** Event type by which a page removes an erased message. */
  erased?: string | undefined;
}

/** A message for a client that has reconnected. */
export interface Missed {
  text: string;
  places: Places;
}

/** Messages that a client has missed, of a page's own channel and of those forwarded to it, in the order of time. */
export class MissedMessages {
  private readonly removals = new Map<Track, Removals>();
  /** Places where the client came back: what is behind them was missed. */
  private resumed_at: Places;

  constructor(
    /** The page's own channel first. */
    private readonly tracks: readonly Track[],
    private readonly page: Channel,
    private readonly outbox: Pick<Outbox, 'head' | 'page' | 'removals'>,
  ) {
    this.resumed_at = this.ends();
  }

  /** Whether all that came after these places can still be sent. */
  async areKept(places: Places): Promise<boolean> {
    const kept = await Promise.all(this.tracks.map((track, index) => this.isKept(track, places[index]!)));
    this.resumed_at = this.ends();
    return kept.every(Boolean);
  }

  private async isKept(track: Track, seq: number): Promise<boolean> {
    if (track.drawn === null || seq === track.at()) return true;
    // Made up, or seen on a node that is ahead of this one: the database knows, and then this node will get there.
    if (seq > track.at()) return seq <= (await this.outbox.head(track.name)) && (await track.reached(seq, CATCH_UP_MS));
    const [first] = await this.outbox.page(track.name, seq, PAGE);
    return first?.seq === seq + 1;
  }

  /** Removals of erased messages that the client may still show, before the places where it stands. */
  async removalsBefore(places: Places): Promise<string[]> {
    const texts: string[] = [];
    for (const [index, track] of this.tracks.entries()) {
      if (track.drawn === null || track.erased === undefined) continue;
      const removals = removalsIn(await this.outbox.removals(track.name, Math.max(0, places[index]! - LOOKED_BACK)));
      this.removals.set(track, removals);
      for (const [id, seq] of removals.erased)
        if (seq <= places[index]!) texts.push(eventText(this.page.name, track.erased, JSON.stringify({ id })));
    }
    return texts;
  }

  /** Whether nothing is left to read after these places. */
  isAtEnd = (places: Places): boolean =>
    this.tracks.every(({ at, drawn }, index) => drawn === null || places[index]! >= at());

  /** The places where a client goes live that stands at these: channels that the page does not draw are passed by. */
  ends = (): Places => this.tracks.map(({ at }) => at());

  /** The next messages after these places, and the places after them; null when some are gone. */
  async after(places: Places): Promise<{ messages: Missed[]; places: Places } | null> {
    const heads = this.tracks.map(({ at }) => at());
    const queues = await Promise.all(
      this.tracks.map((track, index) => this.rows(track, places[index]!, heads[index]!)),
    );
    if (queues.includes(null)) return null;
    const now = this.tracks.map(({ drawn }, index) => (drawn === null ? heads[index]! : places[index]!));
    const messages: Missed[] = [];
    for (;;) {
      const next = earliest(queues as StoredMessage[][]);
      if (next === null) break;
      const row = queues[next]!.shift()!;
      now[next] = row.seq;
      const text = this.textOf(this.tracks[next]!, row, now);
      if (text !== null) messages.push({ text, places: [...now] });
      // The rest of the channel may be older than what the others have.
      if (queues[next]!.length === 0 && row.seq < heads[next]!) break;
    }
    return { messages, places: now };
  }

  /** Rows after `seq` up to `head`; null when the first of them is gone. */
  private async rows(track: Track, seq: number, head: number): Promise<StoredMessage[] | null> {
    if (track.drawn === null || seq >= head) return [];
    const rows = await this.outbox.page(track.name, seq, PAGE);
    return rows[0]?.seq === seq + 1 ? rows.filter((row) => row.seq <= head) : null;
  }

  private textOf(track: Track, row: StoredMessage, places: Places): string | null {
    if (this.removals.get(track)?.covers(row.seq, row.data)) return null;
    const drawn = track.drawn!(row);
    if (drawn === null) return null;
    const [seq, ...forwarded] = places;
    const { name: channel, message_type } = this.page;
    const was_missed = row.seq <= this.resumed_at[this.tracks.indexOf(track)]!;
    const textOf = was_missed ? missedMessageText : storedMessageText;
    return textOf(message_type, this.page.idAt(seq!, forwarded), { channel, ...drawn });
  }
}

/** The queue whose first row is the oldest; null when all are empty. */
function earliest(queues: readonly (readonly StoredMessage[])[]): number | null {
  let found: number | null = null;
  for (const [index, [first]] of queues.entries()) {
    if (first === undefined) continue;
    if (found === null || Date.parse(first.created_at) < Date.parse(queues[found]![0]!.created_at)) found = index;
  }
  return found;
}
