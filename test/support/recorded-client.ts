import type { Socket } from 'node:net';
import type { Caller } from '../../access/authentication/caller';
import type { Queryable } from '../../engines/postgres/port';
import { sleep } from '../faults/support/dose';
import type { Life, Met, Stored } from './delivery-oracle';
import { caller, Client, type RealtimeNode } from './realtime';

const seqOf = (id: string | undefined): number => Number(id?.slice(id.lastIndexOf('-') + 1));

/** One client and all that it meets, for the judge; what is asked of it is done one after the other. */
export class RecordedClient implements Life {
  readonly met: Met[] = [];
  readonly ends = new Set<number>();
  client: Client | null = null;
  /** The last id of each channel that it got. */
  readonly places = new Map<string, string>();
  readonly on = new Set<string>();
  ended = false;
  private seen = 0;
  private doing: Promise<void> = Promise.resolve();

  /** Its token is its name. */
  constructor(
    private readonly node: RealtimeNode,
    readonly name: string,
    readonly may: ReadonlySet<string>,
    given: Partial<Caller>,
  ) {
    node.callers.set(name, caller({ credential_id: name, user_id: name, rate_bucket: name, ...given }));
  }

  then(work: () => Promise<unknown>): void {
    this.doing = this.doing.then(async () => {
      if (!this.ended) await work();
      this.note();
    });
  }

  settled = (): Promise<void> => this.doing;

  async open(): Promise<void> {
    this.client = await Client.open(this.node.url, this.name);
  }

  /** Connects and goes on where another one stood that broke off. */
  async goOn(from: RecordedClient): Promise<void> {
    await from.settled();
    from.note();
    for (const [channel, id] of from.places) this.places.set(channel, id);
    await this.open();
    for (const channel of from.on) await this.subscribe(channel, true);
  }

  /** Moves what came since the last look into the list of what it met. */
  note(): void {
    const { client } = this;
    if (client === null) return;
    for (; this.seen < client.messages.length; this.seen += 1) {
      const message = client.messages[this.seen]!;
      this.met.push({ what: 'got', message });
      const { type, channel, id } = message;
      if (id !== undefined) this.places.set(channel!, id);
      if (type === 'subscribed') this.on.add(channel!);
      if (type === 'error') this.on.delete(channel!);
    }
    if (client.close_code !== null && !this.ended) {
      this.ended = true;
      this.met.push({ what: 'closed', code: client.close_code });
    }
  }

  async subscribe(channel: string, resume: boolean): Promise<void> {
    this.note();
    if (this.on.has(channel)) return;
    const since = resume ? this.places.get(channel) : undefined;
    this.met.push({ what: 'asked', channel, since });
    await this.client!.subscribe(channel, since);
  }

  async unsubscribe(channel: string): Promise<void> {
    this.note();
    if (!this.on.has(channel)) return;
    await this.client!.ask({ type: 'unsubscribe', channel }, 'unsubscribed');
    this.note();
    this.on.delete(channel);
    this.met.push({ what: 'left', channel });
  }

  /** It neither reads nor answers for a while. */
  async stall(ms: number): Promise<void> {
    const socket = (this.client!.ws as unknown as { _socket: Socket })._socket;
    socket.pause();
    await sleep(ms);
    socket.resume();
  }

  /** The socket breaks. */
  end(): void {
    this.ends.add(1005).add(1006);
    this.client?.end();
  }

  /** It has all that is stored on the channels that it is on, or is over. */
  arrived(stored: Stored): boolean {
    this.note();
    return (
      this.ended ||
      [...this.on].every((channel) => seqOf(this.places.get(channel)) === (stored.get(channel)?.length ?? 0))
    );
  }
}

/** The number that each stored message carries, by channel and in order. */
export async function storedNumbers(db: Queryable): Promise<Map<string, number[]>> {
  const rows = await db.query<{ channel: string; n: number }>(
    `select channel, (data::json ->> 'n')::int as n from outbox order by channel, seq`,
  );
  const stored = new Map<string, number[]>();
  for (const { channel, n } of rows) {
    const numbers = stored.get(channel);
    if (numbers) numbers.push(n);
    else stored.set(channel, [n]);
  }
  return stored;
}
