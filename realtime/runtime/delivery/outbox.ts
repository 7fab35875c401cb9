import { withTimeout } from '../../../lib/async/signal';
import { textArray, type Queryable } from '../../../engines/postgres/port';
import { isEventsChannel, sendableEventData } from '../../../domain/events/events';
import type { StoredMessage } from '../relay/envelopes';

/** Bounds of a page: rows have from a hundred bytes to two megabytes, and pages differ. */
export interface PageBounds {
  messages: number;
  /** Of `data`; the row that passes it is the page's last, so that a row larger than the bound still comes. */
  bytes: number;
}

/** Positions in the outbox: the last id that was read of each shard, of shard 0 first. */
export type Places = readonly number[];

/** Messages after the given positions. */
export interface TailPage {
  /** Messages of subscribed channels, and of a few others; in the order of commits within a channel. */
  heard: StoredMessage[];
  /** `<channel> <seq>`, one a line, of each message that has no row in `heard`, in the order of commits. */
  unsubscribed: string;
  /** Number of messages in the page, including those of other channels. */
  messages: number;
  /** When the newest of them was written; null without any. */
  newest_at: string | null;
  places: Places;
  /** More is waiting. */
  more: boolean;
}

/** A deletion, or a message whose content was erased. */
export type Removal = Pick<StoredMessage, 'seq' | 'event_type' | 'data'>;

/** The last row of outbox_tail: see there. */
interface Sum {
  id: number;
  channel: string | null;
  seq: number;
  data: string;
  created_at: string | null;
}

/**
 * Reads of clients that resume, at most this many at once: a reconnecting crowd must not become the database's load.
 */
const CONCURRENT_READS = 4;
/** How long a client may be held up by a database that does not answer. */
const READ_TIMEOUT_MS = 10_000;

/** The work's result, or an error when it takes too long. */
export const inTime = <T>(work: Promise<T>): Promise<T> =>
  withTimeout(work, READ_TIMEOUT_MS, () => new Error('the outbox did not answer in time'));

/** Messages of the previous release hold what may not be sent; they are read until the resume window is over. */
function sendable(messages: StoredMessage[]): StoredMessage[] {
  for (const message of messages) if (isEventsChannel(message.channel)) message.data = sendableEventData(message.data);
  return messages;
}

const bigints = (values: readonly number[]): string => `{${values.join(',')}}`;

/**
 * Reader of the outbox: `id` is in commit order within a shard, `seq` dense per channel. Design §7,
 * docs/decisions/0040.
 */
export class Outbox {
  private readonly shared = new Map<string, Promise<StoredMessage[]>>();
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly db: Queryable,
    private readonly resume_window_ms: number,
  ) {}

  /** Where the outbox ends. Heads outlive the messages, so that no place ever goes back. */
  async end(): Promise<Places> {
    const text = `select array_to_string(outbox_places(), ',') as places`;
    const [row] = await inTime(this.db.query<{ places: string }>(text, [], 'realtime_end'));
    return row!.places.split(',').map(Number);
  }

  /**
   * Page after `after`; no later commit lies before the returned positions. `heard` is the filter of the subscribed
   * channels.
   */
  async tail(after: Places, heard: Buffer, { messages, bytes }: PageBounds): Promise<TailPage> {
    const rows = await inTime(
      this.db.query<StoredMessage>(
        'select * from outbox_tail($1, $2, $3, $4)',
        [bigints(after), heard, messages, bytes],
        'realtime_tail',
      ),
    );
    const sum = rows.pop() as Sum | undefined;
    if (!sum) return { heard: [], unsubscribed: '', messages: 0, newest_at: null, places: after, more: false };
    const places = [...after];
    for (const place of sum.data.split(',')) {
      const colon = place.indexOf(':');
      places[Number(place.slice(0, colon))] = Number(place.slice(colon + 1));
    }
    const { id: messages_read, channel: unsubscribed, created_at: newest_at, seq: more } = sum;
    return {
      heard: sendable(rows),
      unsubscribed: unsubscribed ?? '',
      messages: messages_read,
      newest_at,
      places,
      more: more === 1,
    };
  }

  /** Reads these messages of these channels, as far as the outbox still has them. */
  async bodies(asked: readonly { channel: string; seq: number }[]): Promise<StoredMessage[]> {
    const channels = textArray(asked.map(({ channel }) => channel));
    const seqs = bigints(asked.map(({ seq }) => seq));
    return inTime(
      this.db.query<StoredMessage>('select * from outbox_bodies($1, $2)', [channels, seqs], 'realtime_bodies'),
    ).then(sendable);
  }

  /** Seq of the channel's newest message, 0 when it has none. */
  async head(channel: string): Promise<number> {
    const [row] = await this.limited(() =>
      this.db.query('select seq from channel_heads where channel = $1', [channel], 'realtime_head'),
    );
    return row?.seq ?? 0;
  }

  /**
   * Messages of a channel after `seq` that are within the resume window, oldest first. Clients that ask for the same
   * page at the same time share one query.
   */
  page(channel: string, seq: number, { messages, bytes }: PageBounds): Promise<StoredMessage[]> {
    const key = `${channel} ${seq}`;
    let reading = this.shared.get(key);
    if (!reading) {
      reading = this.limited(() =>
        this.db
          .query<StoredMessage>(
            'select * from outbox_page($1, $2, $3, $4, $5)',
            [channel, seq, `${this.resume_window_ms} milliseconds`, messages, bytes],
            'realtime_page',
          )
          .then(sendable),
      ).finally(() => this.shared.delete(key));
      this.shared.set(key, reading);
    }
    return reading;
  }

  /** Messages of a channel after `seq` that remove others, within the resume window; oldest first. */
  removals(channel: string, seq: number): Promise<Removal[]> {
    const values = [channel, seq, `${this.resume_window_ms} milliseconds`];
    return this.limited(() =>
      this.db.query<Removal>('select * from outbox_removals($1, $2, $3)', values, 'realtime_removals'),
    );
  }

  private async limited<T>(work: () => Promise<T>): Promise<T> {
    if (this.running >= CONCURRENT_READS) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.running += 1;
    try {
      return await inTime(work());
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.running -= 1;
    }
  }
}
