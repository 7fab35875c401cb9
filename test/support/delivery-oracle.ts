import type { ServerMessage } from './realtime';

/** What one client did and met, in order. */
export type Met =
  | { what: 'asked'; channel: string; since: string | undefined }
  | { what: 'left'; channel: string }
  | { what: 'got'; message: ServerMessage }
  | { what: 'closed'; code: number };

export interface Life {
  /** Who it is in a report. */
  name: string;
  met: readonly Met[];
  /** Channels that it may read. */
  may: ReadonlySet<string>;
  /** Close codes that what was done to it can have. */
  ends: ReadonlySet<number>;
}

/** What was stored: for each channel the numbers that its messages carry, seq 1 first. */
export type Stored = ReadonlyMap<string, readonly number[]>;

const seqOf = (id: string): number => Number(id.slice(id.lastIndexOf('-') + 1));

interface Place {
  on: boolean;
  /** It was asked for and not answered yet. */
  since: string | undefined;
  seq: number;
  transient: Set<number>;
}

/**
 * Judges what clients got by what was stored: each subscription gets every message from its place on once, in order,
 * a resumed one from where it says, until it ends; nobody gets anything else; sockets close as they may. Messages that
 * are not stored come at most once each. Returns each wrong as a sentence.
 */
export function wrongs(lives: readonly Life[], stored: Stored): string[] {
  return lives.flatMap((life) => new Judge(life, stored).judge());
}

class Judge {
  private readonly places = new Map<string, Place>();
  private readonly found: string[] = [];
  private closed = false;

  constructor(
    private readonly life: Life,
    private readonly stored: Stored,
  ) {}

  judge(): string[] {
    for (const met of this.life.met) {
      if (this.closed) this.wrong(`met something after its close: ${JSON.stringify(met).slice(0, 200)}`);
      if (met.what === 'asked') this.place(met.channel).since = met.since;
      else if (met.what === 'left') this.place(met.channel).on = false;
      else if (met.what === 'closed') this.close(met.code);
      else this.got(met.message);
    }
    if (!this.closed) for (const [channel, place] of this.places) this.atEnd(channel, place);
    return this.found;
  }

  private wrong(text: string): void {
    if (this.found.length < 10) this.found.push(`${this.life.name} ${text}`);
  }

  private place(channel: string): Place {
    let place = this.places.get(channel);
    if (!place) this.places.set(channel, (place = { on: false, since: undefined, seq: 0, transient: new Set() }));
    return place;
  }

  private close(code: number): void {
    this.closed = true;
    if (!this.life.ends.has(code)) this.wrong(`was closed with ${code}`);
  }

  private got(message: ServerMessage): void {
    const { type, channel, code } = message;
    if (type === 'welcome' || type === 'pong' || type === 'unsubscribed') return;
    if (type === 'subscribed') return this.subscribed(message);
    if (type === 'error') {
      if (code === 'CHANNEL_DROPPED') this.place(channel!).on = false;
      else if (code === 'UNAUTHORIZED' && !this.life.may.has(channel!)) return;
      else if (code !== 'TOKEN_REVOKED') this.wrong(`was told ${code} about ${channel}`);
      return;
    }
    const place = this.place(channel!);
    if (!this.life.may.has(channel!)) return this.wrong(`got a message of ${channel}, which it may not read`);
    if (!place.on) return this.wrong(`got a message of ${channel}, which it is not on`);
    if (message.id === undefined) this.transient(place, message);
    else this.storedOne(place, message);
  }

  private subscribed({ channel, id, recovered }: ServerMessage): void {
    const place = this.place(channel!);
    if (!this.life.may.has(channel!)) this.wrong(`was let on ${channel}, which it may not read`);
    if (place.on) return this.wrong(`was subscribed twice to ${channel}`);
    const { since } = place;
    if (since !== undefined && recovered !== true) this.wrong(`was not given what followed ${since} of ${channel}`);
    if (since !== undefined && recovered === true && id !== since)
      this.wrong(`resumed ${channel} at ${id}, not ${since}`);
    if (since === undefined && recovered !== undefined)
      this.wrong(`was told of a resume of ${channel} that it did not ask`);
    place.on = true;
    place.seq = seqOf(id!);
    place.transient.clear();
  }

  private storedOne(place: Place, { channel, id, data }: ServerMessage): void {
    const seq = seqOf(id!);
    if (seq !== place.seq + 1) this.wrong(`got ${seq} after ${place.seq} of ${channel}`);
    const number = this.stored.get(channel!)?.[seq - 1];
    if (number !== data?.n) this.wrong(`got ${data?.n} as ${seq} of ${channel}, where ${number} is stored`);
    place.seq = seq;
  }

  private transient(place: Place, { channel, data }: ServerMessage): void {
    if (place.transient.has(data!.n)) this.wrong(`got ${data!.n}, which is not stored, twice on ${channel}`);
    place.transient.add(data!.n);
  }

  private atEnd(channel: string, place: Place): void {
    const head = this.stored.get(channel)?.length ?? 0;
    if (place.on && place.seq !== head) this.wrong(`stands at ${place.seq} of ${channel}, which has ${head}`);
  }
}
