import { within } from '../../kernel/signal';
import type { Queryable } from '../../engines/postgres/port';
import type { StoredMessage } from './envelopes';

const COLUMNS = 'id, channel, seq, event_type, data, created_at, trace';
/** What one page may hold: rows are a hundred bytes or two megabytes, and the next page need not be like the last. */
export interface PageBounds {
  messages: number;
  /** Of `data`; the row that passes it is the page's last, so that a row larger than the bound still comes. */
  bytes: number;
}
/**
 * The first rows of `matching`, which has {@link COLUMNS}, by this column and within {@link PageBounds}; sizes are
 * known without reading the rows.
 */
const bounded = (matching: string, by: string, messages: string, bytes: string): string =>
  `select ${COLUMNS} from (
     select *, sum(octet_length(data)) over (order by ${by} rows between unbounded preceding and 1 preceding) as before
     from (${matching} order by ${by} limit ${messages}) first
   ) sized where coalesce(before, 0) < ${bytes} order by ${by}`;
/**
 * Reads of clients that resume, at most this many at once: a reconnecting crowd must not become the database's load.
 */
const CONCURRENT_READS = 4;
/** How long a client may be held up by a database that does not answer. */
const READ_TIMEOUT_MS = 10_000;

/** The work's result, or an error when it takes too long. */
export const inTime = <T>(work: Promise<T>): Promise<T> =>
  within(work, READ_TIMEOUT_MS, () => new Error('the outbox did not answer in time'));

/** What realtime reads of the outbox: `id` is in commit order over all channels, `seq` dense per channel. Design §7. */
export class Outbox {
  private readonly shared = new Map<string, Promise<StoredMessage[]>>();
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly db: Queryable,
    private readonly resume_window_ms: number,
  ) {}

  /** The newest id, 0 when nothing was ever written. The trimmer leaves the newest row, so this never goes back. */
  async newest(): Promise<number> {
    const [row] = await inTime(
      this.db.query('select coalesce(max(id), 0) as newest from outbox', [], 'realtime_newest'),
    );
    return row!.newest;
  }

  /** Rows after `after` of all channels, oldest first. Nothing that commits later can have a lower id. */
  tail(after: number, { messages, bytes }: PageBounds): Promise<StoredMessage[]> {
    return inTime(
      this.db.query<StoredMessage>(
        bounded(`select ${COLUMNS} from outbox where id > $1`, 'id', '$2', '$3'),
        [after, messages, bytes],
        'realtime_tail',
      ),
    );
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
        this.db.query<StoredMessage>(
          bounded(
            `select ${COLUMNS} from outbox
             where channel = $1 and seq > $2 and created_at > clock_timestamp() - $3 * interval '1 millisecond'`,
            'seq',
            '$4',
            '$5',
          ),
          [channel, seq, this.resume_window_ms, messages, bytes],
          'realtime_page',
        ),
      ).finally(() => this.shared.delete(key));
      this.shared.set(key, reading);
    }
    return reading;
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
