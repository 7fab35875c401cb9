import { createHmac } from 'node:crypto';
import { Agent, request } from 'node:http';
import { seeded, sleep } from './dose';
import type { Lumio } from './lumio';

/** What was sent and answered, to be compared with what the server keeps. */
export interface Sent {
  /** By lane: external ids that were acknowledged, in the order of their acknowledgement. Each was sent after the one before was answered. */
  lanes: Map<string, string[]>;
  /** External ids that were sent at all: the unanswered ones may be there, once, or not. */
  tried: Set<string>;
  /** Labels of API keys whose creation was acknowledged; those tried. */
  keys: { acked: Set<string>; tried: Set<string> };
  /** What no fault excuses: a vendor refused, a 5xx without Retry-After … */
  violations: string[];
  /** Status (0: no answer) to how often. */
  statuses: Map<number, number>;
  /** Answered webhooks: when, and how long the one request took, milliseconds. */
  answers: { at: number; ms: number }[];
}

export interface TrafficOptions {
  seed: number;
  /** Lanes of webhooks; each sends one at a time and repeats it until it is acknowledged, as vendors do. Default 6. */
  webhooks?: number;
  /** Lanes of POST /v1/events/emit under an Idempotency-Key. Default 1. */
  emits?: number;
  /** Lanes of POST /v1/api-keys under an Idempotency-Key. Default 1. */
  keys?: number;
  /** Milliseconds between two items of a lane, on average. Default 2. */
  pause_ms?: number;
  /** Prefix of ids; two loads on one server need two. */
  name?: string;
  /** Milliseconds after which a request is given up, its fate unknown. Default 12 000. */
  timeout_ms?: number;
  /** Share of deliveries that are sent twice although they were acknowledged. Default 0.05. */
  repeats?: number;
}

interface Answer {
  /** 0: the connection ended, or nothing came in time. */
  status: number;
  retry_after: string | undefined;
  text: string;
  ms: number;
}

const IMPATIENCE_MS = 100;

/** A seeded mix of webhooks and commands that runs through faults, and knows what it was promised. */
export class Traffic {
  readonly sent: Sent = nothing();
  private agent = new Agent();
  /** By lane: the number of its next item, so that a load can be stopped and started. */
  private readonly numbers = new Map<string, number>();
  private running: Promise<unknown> | undefined;
  private stopping = false;
  private give_up_at = Number.POSITIVE_INFINITY;

  constructor(
    private lumio: Pick<Lumio, 'base_url' | 'credentials' | 'disposed'>,
    private readonly options: TrafficOptions,
  ) {}

  /** Sends until {@link stop}; may be called again after it. */
  start(): this {
    const { webhooks = 6, emits = 1, keys = 1 } = this.options;
    this.stopping = false;
    this.give_up_at = Number.POSITIVE_INFINITY;
    this.agent = new Agent({ keepAlive: true, maxSockets: 64 });
    const lanes: Promise<void>[] = [];
    for (let n = 0; n < webhooks; n += 1) lanes.push(this.lane(`w${n}`, (id) => this.webhook(id)));
    for (let n = 0; n < emits; n += 1) lanes.push(this.lane(`e${n}`, (id) => this.emit(id)));
    for (let n = 0; n < keys; n += 1) lanes.push(this.lane(`k${n}`, (id) => this.key(id)));
    this.running = Promise.all(lanes);
    this.running.catch(() => undefined); // thrown by stop()
    return this;
  }

  /** Every lane ends with an acknowledged item. @throws when the server still refuses after `within_ms` */
  async stop(within_ms = 60_000): Promise<Sent> {
    this.stopping = true;
    this.give_up_at = Date.now() + within_ms;
    await this.running;
    this.agent.destroy();
    return this.sent;
  }

  get acked(): number {
    let count = this.sent.keys.acked.size;
    for (const lane of this.sent.lanes.values()) count += lane.length;
    return count;
  }

  /** The 99th percentile of answered webhooks since that moment, milliseconds; undefined when fewer than 50 were answered. */
  p99Since(moment: number): number | undefined {
    const times = this.sent.answers.filter(({ at }) => at >= moment).map(({ ms }) => ms);
    if (times.length < 50) return undefined;
    return times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)];
  }

  private async lane(name: string, send: (id: string) => Promise<boolean>): Promise<void> {
    const { seed, pause_ms = 2, name: prefix = 'run' } = this.options;
    const random = seeded(seed + hash(name));
    for (let n = this.numbers.get(name) ?? 0; !this.stopping && !this.lumio.disposed; n += 1) {
      this.numbers.set(name, n + 1);
      const id = `${prefix}-${name}-${n}`;
      while (!(await send(id))) {
        if (this.lumio.disposed) return;
        if (Date.now() > this.give_up_at) throw new Error(`${id} was still not acknowledged\n${this.summary()}`);
        await sleep(IMPATIENCE_MS * (0.5 + random()));
      }
      if (name.startsWith('w') && random() < (this.options.repeats ?? 0.05)) await send(id);
      if (pause_ms > 0) await sleep(pause_ms * 2 * random());
    }
  }

  private acknowledge(id: string): void {
    const lane = id.slice(0, id.lastIndexOf('-'));
    const list = this.sent.lanes.get(lane) ?? [];
    if (list.at(-1) !== id) list.push(id);
    this.sent.lanes.set(lane, list);
  }

  private async webhook(id: string): Promise<boolean> {
    const { connections, webhook_signing } = this.lumio.credentials;
    const body = JSON.stringify({
      type: 'channel.spell',
      channel_id: connections.trovo.platform_channel_id,
      message_id: id,
      uid: String(hash(id) % 50),
      gift: 'Winner',
    });
    this.sent.tried.add(id);
    const signature = createHmac('sha256', webhook_signing.trovo_secret).update(body).digest('hex');
    const answer = await this.post('/v1/webhooks/trovo', body, { 'x-trovo-signature': signature });
    if (answer.status === 200) {
      this.acknowledge(id);
      this.sent.answers.push({ at: Date.now(), ms: answer.ms });
      return true;
    }
    if (answer.status === 503) {
      if (!answer.retry_after) this.violate(`webhook ${id}: 503 without Retry-After`);
    } else if (answer.status !== 0) this.violate(`webhook ${id}: ${answer.status} ${answer.text.slice(0, 200)}`);
    return false;
  }

  private async emit(id: string): Promise<boolean> {
    this.sent.tried.add(id);
    const body = JSON.stringify({ event_type: 'twitch:cheer', external_id: id, raw: { bits: 1 } });
    const answer = await this.post('/v1/events/emit', body, this.bearer(id));
    if (answer.status === 200) this.acknowledge(id);
    else this.explain(`emit ${id}`, answer);
    return answer.status === 200;
  }

  private async key(id: string): Promise<boolean> {
    this.sent.keys.tried.add(id);
    const body = JSON.stringify({ label: id, permissions: ['events:read'] });
    const answer = await this.post('/v1/api-keys', body, this.bearer(id));
    // Stored by a try whose answer was lost; its secret is nobody's, which the answer says.
    const made = answer.status === 201 || (answer.status === 409 && answer.text.includes('can no longer be shown'));
    if (made) this.sent.keys.acked.add(id);
    else this.explain(`key ${id}`, answer);
    // Each stays an active key of the account: a moderate number is enough.
    await sleep(50);
    return made;
  }

  /** Commands may meet any 5xx in a fault, a limit, or their own earlier try; nothing else. */
  private explain(what: string, answer: Answer): void {
    const expected = answer.status === 0 || answer.status >= 500 || [401, 409, 429].includes(answer.status);
    if (!expected) this.violate(`${what}: ${answer.status} ${answer.text.slice(0, 200)}`);
  }

  private bearer(idempotency_key: string): Record<string, string> {
    return { authorization: `Bearer ${this.lumio.credentials.access_token}`, 'idempotency-key': idempotency_key };
  }

  private violate(what: string): void {
    if (this.sent.violations.length < 50) this.sent.violations.push(what);
  }

  summary(): string {
    return `answers by status (0: none): ${JSON.stringify([...this.sent.statuses])}`;
  }

  private async post(path: string, body: string, headers: Record<string, string>): Promise<Answer> {
    const answer = await this.send(path, body, headers);
    this.sent.statuses.set(answer.status, (this.sent.statuses.get(answer.status) ?? 0) + 1);
    return answer;
  }

  private send(path: string, body: string, headers: Record<string, string>): Promise<Answer> {
    const started = performance.now();
    const timeout = this.options.timeout_ms ?? 12_000;
    return new Promise((done) => {
      const end = (status: number, text = '', retry_after?: string) =>
        done({ status, text, retry_after, ms: performance.now() - started });
      const all = { 'content-type': 'application/json', ...headers };
      const req = request(
        `${this.lumio.base_url}${path}`,
        { method: 'POST', agent: this.agent, headers: all },
        (res) => {
          let text = '';
          res.on('data', (chunk: Buffer) => (text += chunk.toString()));
          // An answer counts when it came whole: so does a vendor see it.
          res.on('end', () => end(res.statusCode ?? 0, text, res.headers['retry-after']));
          res.on('error', () => end(0));
        },
      );
      req.setTimeout(timeout, () => req.destroy(new Error('no answer in time')));
      req.on('error', () => end(0));
      req.end(body);
    });
  }
}

function hash(text: string): number {
  let value = 7;
  for (let n = 0; n < text.length; n += 1) value = (Math.imul(value, 31) + text.charCodeAt(n)) >>> 0;
  return value;
}

/** Nothing sent, nothing promised. */
export const nothing = (): Sent => ({
  lanes: new Map(),
  tried: new Set(),
  keys: { acked: new Set(), tried: new Set() },
  violations: [],
  statuses: new Map(),
  answers: [],
});

/** What two loads with lanes of their own sent and were promised. */
export const both = (a: Sent, b: Sent): Sent => ({
  lanes: new Map([...a.lanes, ...b.lanes].map(([lane, ids]) => [lane, [...ids]])),
  tried: new Set([...a.tried, ...b.tried]),
  keys: {
    acked: new Set([...a.keys.acked, ...b.keys.acked]),
    tried: new Set([...a.keys.tried, ...b.keys.tried]),
  },
  violations: [...a.violations, ...b.violations],
  statuses: new Map([...a.statuses, ...b.statuses]),
  answers: [...a.answers, ...b.answers],
});

/** What was sent and promised up to now; the load goes on. */
export const copyOf = (sent: Sent): Sent => both(sent, nothing());
