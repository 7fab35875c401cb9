import { createHmac, createPrivateKey, type KeyObject } from 'node:crypto';
import { Agent, request } from 'node:http';
import { slowness } from '../../support/patience';
import { kickHeaders, stripeHeaders } from '../../support/webhooks';
import { seeded, sleep, until } from './dose';
import type { Lumio } from './lumio';

/** What was sent and answered, to be compared with what the server keeps. */
export interface Sent {
  /**
   * By lane: external ids that were acknowledged, in the order of their acknowledgement. Each was sent after the one
   * before was answered.
   */
  lanes: Map<string, string[]>;
  /** External ids that were sent at all: the unanswered ones may be there, once, or not. */
  tried: Set<string>;
  /** Labels of API keys whose creation was acknowledged; those tried. */
  keys: { acked: Set<string>; tried: Set<string> };
  /** Ids of payment objects of Stripe. */
  payments: { acked: Set<string>; tried: Set<string> };
  /** Ids of chat messages of Kick; the acknowledged ones in the order of their acknowledgement. */
  chat: { acked: Set<string>; tried: Set<string> };
  /** What no fault excuses: a vendor refused, a 5xx that is no 503 with Retry-After … */
  violations: string[];
  /** Status (0: no answer) to how often. */
  statuses: Map<number, number>;
  /** Each request of a webhook: when it ended, and its milliseconds; endless when it was not taken. */
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
  /** Lanes of payments of Stripe, whose signature holds a time. Default 1. */
  payments?: number;
  /** Lanes of chat messages of Kick, whose signature holds a time. Default 1. */
  chat?: number;
  /** Milliseconds between two items of a lane, on average. Default 2. */
  pause_ms?: number;
  /** Prefix of ids; two loads on one server need two. */
  name?: string;
  /** Milliseconds after which a request is given up, its fate unknown. Default 12 000. */
  timeout_ms?: number;
  /** Share of deliveries that are sent twice although they were acknowledged. Default 0.05. */
  repeats?: number;
  /** Share of items that are given up after a try that failed: each is there once or not at all. Default 0.1. */
  given_up?: number;
}

interface Answer {
  /** 0: the connection ended, or nothing came in time. */
  status: number;
  retry_after: string | undefined;
  text: string;
  ms: number;
}

const IMPATIENCE_MS = 100;
/** An account may have 500. */
const MAX_KEYS = 400;

/** What is needed is away; the answer says when to come again. */
const isAway = ({ status, retry_after }: Answer): boolean => status === 503 && Number(retry_after) > 0;
/** The caller's limit is used up. */
const isLimited = ({ status, retry_after }: Answer): boolean => status === 429 && Number(retry_after) > 0;
/** The same command is still being worked on. */
const isEarlierTry = ({ status, text, retry_after }: Answer): boolean =>
  status === 409 && text.includes('is still in progress') && Number(retry_after) > 0;
/** A key that was stored by a try whose answer was lost; its secret is nobody's, which the answer says. */
const isLostKey = ({ status, text }: Answer): boolean => status === 409 && text.includes('can no longer be shown');
const shown = ({ status, text, retry_after }: Answer): string =>
  `${status} ${retry_after ? `Retry-After ${retry_after}` : 'without Retry-After'} ${text.slice(0, 200)}`;

/** A seeded mix of webhooks and commands that runs through faults, and knows what it was promised. */
export class Traffic {
  readonly sent: Sent = nothing();
  private agent = new Agent();
  private kick_key: KeyObject | undefined;
  /** By lane: the number of its next item, so that a load can be stopped and started. */
  private readonly numbers = new Map<string, number>();
  /** When each webhook that is under way was sent. */
  private readonly waiting = new Map<string, number>();
  private running: Promise<unknown> | undefined;
  private stopping = false;
  private give_up_at = Number.POSITIVE_INFINITY;

  constructor(
    private lumio: Pick<Lumio, 'base_url' | 'credentials' | 'readCredentials' | 'disposed'>,
    private readonly options: TrafficOptions,
  ) {}

  /** Sends until {@link stop}; may be called again after it. */
  start(): this {
    const { webhooks = 6, emits = 1, keys = 1, payments = 1, chat = 1 } = this.options;
    this.stopping = false;
    this.give_up_at = Number.POSITIVE_INFINITY;
    this.agent = new Agent({ keepAlive: true, maxSockets: 64 });
    const lanes: Promise<void>[] = [];
    for (let n = 0; n < webhooks; n += 1) lanes.push(this.lane(`w${n}`, (id) => this.webhook(id)));
    for (let n = 0; n < emits; n += 1) lanes.push(this.lane(`e${n}`, (id) => this.emit(id)));
    for (let n = 0; n < keys; n += 1) lanes.push(this.lane(`k${n}`, (id) => this.key(id)));
    for (let n = 0; n < payments; n += 1) lanes.push(this.lane(`p${n}`, (id) => this.payment(id)));
    for (let n = 0; n < chat; n += 1) lanes.push(this.lane(`c${n}`, (id) => this.message(id)));
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

  /**
   * The 99th percentile of all requests of webhooks that ended since that moment or wait now, milliseconds: one that
   * was not taken took for ever, one that waits as long as it has. Undefined when there are fewer than 50.
   */
  p99Since(moment: number): number | undefined {
    const now = Date.now();
    const ended = this.sent.answers.filter(({ at }) => at >= moment).map(({ ms }) => ms);
    const times = [...ended, ...[...this.waiting.values()].map((since) => now - since)];
    if (times.length < 50) return undefined;
    return times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)];
  }

  private async lane(name: string, send: (id: string) => Promise<boolean>): Promise<void> {
    const { seed, pause_ms = 2, name: prefix = 'run', given_up = 0.1 } = this.options;
    const random = seeded(seed + hash(name));
    let taken = true;
    for (let n = this.numbers.get(name) ?? 0; !(this.stopping && taken) && !this.lumio.disposed; n += 1) {
      this.numbers.set(name, n + 1);
      const id = `${prefix}-${name}-${n}`;
      const fickle = random() < given_up;
      taken = await send(id);
      while (!taken && !fickle) {
        if (this.lumio.disposed) return;
        if (Date.now() > this.give_up_at) throw new Error(`${id} was still not acknowledged\n${this.summary()}`);
        await sleep(IMPATIENCE_MS * (0.5 + random()));
        taken = await send(id);
      }
      if (!taken) await sleep(IMPATIENCE_MS * (0.5 + random()));
      else if (name.startsWith('w') && random() < (this.options.repeats ?? 0.05)) await send(id);
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
    this.waiting.set(id, Date.now());
    const answer = await this.post('/v1/webhooks/trovo', body, { 'x-trovo-signature': signature });
    this.waiting.delete(id);
    const taken = answer.status === 200;
    this.sent.answers.push({ at: Date.now(), ms: taken ? answer.ms : Number.POSITIVE_INFINITY });
    if (taken) this.acknowledge(id);
    else if (answer.status !== 0 && !isAway(answer)) this.violate(`webhook ${id}: ${shown(answer)}`);
    return taken;
  }

  private async payment(id: string): Promise<boolean> {
    const { payments } = this.sent;
    payments.tried.add(id);
    const created = Math.floor(Date.now() / 1000);
    const object = { id, object: 'subscription', status: 'active', customer: 'cus_1', created, items: { data: [] } };
    const event = { id: `evt_${id}`, object: 'event', type: 'customer.subscription.updated', created, livemode: false };
    const body = JSON.stringify({ ...event, data: { object } });
    const { stripe_secret } = this.lumio.credentials.webhook_signing;
    const headers = stripeHeaders(Buffer.from(body), created, stripe_secret);
    return this.signed('/v1/webhooks/stripe', id, body, headers, payments.acked);
  }

  private async message(id: string): Promise<boolean> {
    const { chat } = this.sent;
    chat.tried.add(id);
    const { connections, webhook_signing } = this.lumio.credentials;
    const broadcaster = { user_id: Number(connections.kick.platform_channel_id), username: 'us', channel_slug: 'us' };
    const sender = { user_id: 7, username: 'viewer', channel_slug: 'viewer' };
    const at = new Date().toISOString();
    const body = JSON.stringify({
      message_id: id,
      broadcaster,
      sender,
      content: 'hello',
      emotes: null,
      created_at: at,
    });
    const key = (this.kick_key ??= createPrivateKey(webhook_signing.kick_private_key));
    const headers = kickHeaders(Buffer.from(body), 'chat.message.sent', id, at, key);
    return this.signed('/v1/webhooks/kick', id, body, headers, chat.acked);
  }

  /** A delivery that is acknowledged when it is answered 200. */
  private async signed(path: string, id: string, body: string, headers: Record<string, string>, acked: Set<string>) {
    const answer = await this.post(path, body, headers);
    if (answer.status === 200) acked.add(id);
    else if (answer.status !== 0 && !isAway(answer)) this.violate(`${path} ${id}: ${shown(answer)}`);
    return answer.status === 200;
  }

  private async emit(id: string): Promise<boolean> {
    this.sent.tried.add(id);
    const body = JSON.stringify({ event_type: 'twitch:cheer', external_id: id, raw: { bits: 1 } });
    const done = await this.command('/v1/events/emit', body, id, ({ status }) => status === 200);
    if (done) this.acknowledge(id);
    return done;
  }

  private async key(id: string): Promise<boolean> {
    const { tried } = this.sent.keys;
    if (tried.size >= MAX_KEYS && !tried.has(id)) {
      await sleep(50);
      return true;
    }
    tried.add(id);
    const body = JSON.stringify({ label: id, permissions: ['events:read'] });
    const made = (answer: Answer) => answer.status === 201 || isLostKey(answer);
    const done = await this.command('/v1/api-keys', body, id, made);
    if (done) this.sent.keys.acked.add(id);
    // Each stays an active key of the account: a moderate number is enough.
    await sleep(50);
    return done;
  }

  /**
   * A command under an Idempotency-Key: true when it is done, false when it was refused in a way that a fault excuses.
   */
  private async command(path: string, body: string, id: string, isDone: (answer: Answer) => boolean): Promise<boolean> {
    const { access_token } = this.lumio.credentials;
    const answer = await this.post(path, body, { authorization: `Bearer ${access_token}`, 'idempotency-key': id });
    if (isDone(answer)) return true;
    if (answer.status === 401) this.lumio.readCredentials();
    const renewed = answer.status === 401 && this.lumio.credentials.access_token !== access_token;
    const excused = answer.status === 0 || isAway(answer) || isLimited(answer) || isEarlierTry(answer) || renewed;
    if (!excused) this.violate(`POST ${path} ${id}: ${shown(answer)}`);
    return false;
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

/** Waits until webhooks are answered as on any day: those since `moment`, without one those of the last seconds. */
export function ordinary(traffic: Traffic, moment?: number): Promise<void> {
  const times = slowness();
  const p99 = () => traffic.p99Since(moment ?? Date.now() - 3000 * times) ?? Number.POSITIVE_INFINITY;
  return until(() => p99() < 1500 * times, 'an ordinary p99');
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
  payments: { acked: new Set(), tried: new Set() },
  chat: { acked: new Set(), tried: new Set() },
  violations: [],
  statuses: new Map(),
  answers: [],
});

const bothSets = (a: Sent['keys'], b: Sent['keys']): Sent['keys'] => ({
  acked: new Set([...a.acked, ...b.acked]),
  tried: new Set([...a.tried, ...b.tried]),
});

/** What two loads with lanes of their own sent and were promised. */
export const both = (a: Sent, b: Sent): Sent => ({
  lanes: new Map([...a.lanes, ...b.lanes].map(([lane, ids]) => [lane, [...ids]])),
  tried: new Set([...a.tried, ...b.tried]),
  keys: bothSets(a.keys, b.keys),
  payments: bothSets(a.payments, b.payments),
  chat: bothSets(a.chat, b.chat),
  violations: [...a.violations, ...b.violations],
  statuses: new Map([...a.statuses, ...b.statuses]),
  answers: [...a.answers, ...b.answers],
});

/** What was sent and promised up to now; the load goes on. */
export const copyOf = (sent: Sent): Sent => both(sent, nothing());
