import type { RawData, WebSocket } from 'ws';
import type { Shard } from './shards';
import type { CommandUse, DiscordCommands } from './commands';
import { actionOf, type Boosts, type MemberAct } from './members';
import { type AdapterSession, ConnectionRefused, type Link, LinkLost, PauseAsked } from '../runtime/connection/adapter';
import { readJson } from '../runtime/parse/text';
import { keptId, member } from '../runtime/webhook/webhook';

export interface DiscordTimings {
  /** Longest time for the socket, its hello and the answer to our identification. */
  open_ms: number;
  /** Range of the random pause that Discord requires before a new session. */
  invalid_ms: readonly [number, number];
}

/** GUILDS and GUILD_MEMBERS; the latter is switched on in the developers' portal. */
const INTENTS = (1 << 0) | (1 << 1);
/** GUILD_MESSAGES and MESSAGE_CONTENT; the latter is switched on in the developers' portal. */
const MESSAGES = (1 << 9) | (1 << 15);
const DISALLOWED_INTENTS = 4014;
const OP = {
  dispatch: 0,
  heartbeat: 1,
  identify: 2,
  resume: 6,
  reconnect: 7,
  invalid_session: 9,
  hello: 10,
} as const;
/** Close codes after which the same token and intents are refused again. */
const FATAL: Readonly<Record<number, string>> = {
  4004: 'authentication_failed',
  4010: 'invalid_shard',
  4012: 'invalid_version',
  4013: 'invalid_intents',
  4014: 'disallowed_intents',
};
/** The session would have more servers than Discord allows. */
const SHARDING_REQUIRED = 4011;
/** Close codes that end the session for good. */
const OVER: ReadonlySet<number> = new Set([1000, 1001, 4003, 4007, 4009]);
/** Our close code when leaving: any code other than 1000 and 1001 keeps the session. */
const LEAVING = 4_200;
/** Bounds of a plausible heartbeat interval. */
const LEAST_BEAT_MS = 20;
const MAX_BEAT_MS = 300_000;

/** Discord does not give the bot the content of messages. */
export class ContentRefused extends LinkLost {}

/** The bot has too many servers for the number of shards. */
export class ShardsRequired extends LinkLost {}

/** Maximum bytes of waiting events; above it the socket is paused. */
const MAX_WAITING = 4 << 20;

/** State with which a successor resumes the same session. */
export interface Kept {
  session_id: string;
  /** Number of the last stored event. */
  seq: number;
  url: string;
  /** Shard of the session. */
  shard: Shard;
}

interface SessionDeps {
  link: Link;
  /** Returns the account that a guild is linked to; null for an unlinked one. */
  accountOf(guild_id: string): Promise<string | null>;
  boosts: Boosts;
  timings: DiscordTimings;
  commands: DiscordCommands;
  /** Whether the session asks for messages with their content. */
  wants_content: boolean;
}

/** A socket of the gateway. */
export class DiscordSession implements AdapterSession {
  readonly ended: Promise<void>;
  private began!: () => void;
  private refused!: (error: Error) => void;
  private readonly begun = new Promise<void>((resolve, reject) => {
    this.began = resolve;
    this.refused = reject;
  });
  private token = '';
  private resuming: Kept | null = null;
  private session_id = '';
  private url = '';
  /** Number of the last received event, stored or not. */
  private seq: number | null = null;
  private acknowledged = true;
  /** True when an event could not be handled: it and the later ones are left to a successor. */
  private failed = false;
  /** True when Discord has ended the session for good. */
  over = false;
  private readonly heard_before: number | null;
  private beat: NodeJS.Timeout | undefined;
  private cause: Error | undefined;
  /** Chain of event handlers: events are handled one after the other, because finding their account is asynchronous. */
  private work: Promise<void> = Promise.resolve();
  private waiting_bytes = 0;

  private readonly link: Link;
  private readonly boosts: Boosts;
  private readonly timings: DiscordTimings;

  constructor(
    private readonly deps: SessionDeps,
    private readonly socket: WebSocket,
    private readonly shard: Shard,
  ) {
    const { link, boosts, timings } = deps;
    [this.link, this.boosts, this.timings] = [link, boosts, timings];
    this.heard_before = link.last_heard;
    this.begun.catch(() => undefined);
    this.ended = new Promise((_resolve, reject) => {
      socket.on('error', (error: Error) => (this.cause ??= error));
      socket.on('close', (code: number) => {
        clearTimeout(this.beat);
        const error = this.endedBy(code);
        this.refused(error);
        reject(error);
      });
    });
    this.ended.catch(() => undefined);
    socket.on('message', (data: RawData, is_binary: boolean) => {
      if (!is_binary) this.take((data as Buffer).toString());
    });
  }

  /**
   * Resolves when the session has begun or is resumed.
   * @throws LinkLost, PauseAsked, ConnectionRefused
   */
  begin(token: string, kept: Kept | null): Promise<void> {
    this.token = token;
    this.resuming = kept;
    this.seq = kept?.seq ?? null;
    this.session_id = kept?.session_id ?? '';
    this.url = kept?.url ?? '';
    return this.begun;
  }

  /** Closes the socket and keeps the session, so that a successor can resume it. */
  end(): void {
    clearTimeout(this.beat);
    if (this.socket.readyState === this.socket.OPEN) this.socket.close(LEAVING);
    else this.socket.terminate();
    const { socket } = this;
    // The other side has half a second to answer the close.
    setTimeout(() => socket.terminate(), 500).unref();
  }

  private endedBy(code: number): Error {
    if (code === DISALLOWED_INTENTS && this.deps.wants_content)
      return new ContentRefused('Discord does not let the bot read messages.');
    const reason = FATAL[code];
    if (reason !== undefined) return new ConnectionRefused(reason);
    if (code === SHARDING_REQUIRED) return new ShardsRequired('Discord asks for more shards.');
    if (OVER.has(code)) this.forget();
    if (this.cause instanceof PauseAsked) return this.cause;
    return new LinkLost(`Discord has closed the connection (${code}).`, { cause: this.cause });
  }

  /** The session is lost: the next one starts over, and the events in between are missed. */
  private forget(): void {
    this.over = true;
    const from = this.heard_before;
    if (this.resuming !== null || this.seq !== null) {
      this.link.missed({ from, to: Date.now(), detail: 'Discord does not let the session go on.' });
    }
    this.resuming = null;
    this.seq = null;
    this.link.keep(null);
  }

  private take(text: string): void {
    const received_at = Date.now();
    this.link.heard(received_at);
    // Any frame proves an active connection: the answer to a heartbeat may be queued behind megabytes of others.
    this.acknowledged = true;
    const frame = readJson(text);
    if (!frame.ok) return;
    const at = (...path: string[]) => member(frame.value, ...path);
    switch (at('op')) {
      case OP.dispatch:
        this.waiting_bytes += text.length;
        this.dispatch(at('t'), at('s'), at('d'), received_at);
        if (this.waiting_bytes > MAX_WAITING) this.socket.pause();
        void this.work.then(() => this.done(text.length));
        return;
      case OP.heartbeat:
        return this.heartbeat();
      case OP.reconnect:
        return this.end();
      case OP.invalid_session:
        return this.invalid(at('d') === true);
      case OP.hello:
        return this.hello(at('d', 'heartbeat_interval'));
    }
  }

  private hello(interval: unknown): void {
    if (typeof interval !== 'number' || !(interval >= LEAST_BEAT_MS && interval <= MAX_BEAT_MS)) {
      this.cause = new LinkLost('Discord’s hello names no heartbeat.');
      return this.end();
    }
    clearTimeout(this.beat);
    // The first at a random moment, so that clients that reconnect together do not send heartbeats together.
    this.beat = setTimeout(() => this.beats(interval), interval * Math.random());
    const { token, resuming } = this;
    if (resuming !== null) {
      const { session_id, seq } = resuming;
      return this.send(OP.resume, { token, session_id, seq });
    }
    this.send(OP.identify, {
      token,
      intents: this.deps.wants_content ? INTENTS | MESSAGES : INTENTS,
      properties: { os: process.platform, browser: 'lumio', device: 'lumio' },
      large_threshold: 250,
      shard: this.shard,
    });
  }

  private beats(interval: number): void {
    if (!this.acknowledged && !this.socket.isPaused) {
      // The connection is dead, whatever the socket's state is; the session is not.
      this.cause = new LinkLost('Discord did not answer a heartbeat.');
      return this.socket.terminate();
    }
    this.acknowledged = false;
    this.heartbeat();
    this.beat = setTimeout(() => this.beats(interval), interval);
  }

  private heartbeat(): void {
    this.send(OP.heartbeat, this.seq);
  }

  private invalid(may_resume: boolean): void {
    const [least, most] = this.timings.invalid_ms;
    this.cause = new PauseAsked('Discord does not take the session.', least + Math.random() * (most - least));
    if (!may_resume) this.forget();
    this.end();
  }

  private dispatch(type: unknown, seq: unknown, data: unknown, received_at: number): void {
    if (typeof seq !== 'number' || !Number.isSafeInteger(seq)) return;
    this.seq = seq;
    if (type === 'READY') this.ready(data);
    if (type === 'READY' || type === 'RESUMED') this.began();
    if (type === 'GUILD_CREATE') this.learn(data, received_at);
    const keep = () => this.keep(seq);
    // Discord waits for 3 seconds only: an interaction is acknowledged before earlier events are stored.
    const use = type === 'INTERACTION_CREATE' ? this.interaction(data) : null;
    use?.catch(() => undefined);
    this.work = this.work
      .then(async () => {
        if (this.failed) return;
        if (use === null) await this.tell(type, seq, data, received_at);
        else await this.deliverUse(await use, received_at);
        keep();
      })
      .catch((error: Error) => {
        // The event may not be stored: Discord repeats it to the successor that resumes from the previous one.
        this.failed = true;
        this.cause = error;
        this.end();
      });
  }

  private done(bytes: number): void {
    this.waiting_bytes -= bytes;
    if (this.waiting_bytes > MAX_WAITING / 2 || !this.socket.isPaused) return;
    // The answer to the last heartbeat may be among the unread frames.
    this.acknowledged = true;
    this.socket.resume();
  }

  private ready(data: unknown): void {
    this.session_id = keptId(member(data, 'session_id')) ?? '';
    this.url = keptId(member(data, 'resume_gateway_url')) ?? '';
  }

  /** Reads from an arriving guild which members boost it already. */
  private learn(data: unknown, received_at: number): void {
    const guild_id = keptId(member(data, 'id'));
    const members = member(data, 'members');
    if (guild_id === null || !Array.isArray(members)) return;
    for (const one of members) {
      const user_id = keptId(member(one, 'user', 'id'));
      if (user_id !== null) this.boosts.begins(guild_id, user_id, member(one, 'premium_since'), received_at);
    }
  }

  private async tell(type: unknown, seq: number, data: unknown, received_at: number): Promise<void> {
    if (type === 'MESSAGE_CREATE') return this.message(data, received_at);
    const happened = actionOf(type);
    const guild_id = keptId(member(data, 'guild_id'));
    const user_id = keptId(member(data, 'user', 'id'));
    if (happened === null || guild_id === null || user_id === null) return;
    const premium_since = member(data, 'premium_since');
    // An update without the member leaves the boost as it is; null ends it.
    if (happened === 'member_update' && premium_since === undefined) return;
    const boosts = this.boosts.begins(guild_id, user_id, premium_since, received_at);
    if (happened === 'member_update' && !boosts) return;
    const account_id = await this.deps.accountOf(guild_id);
    if (account_id === null) return;
    const act: MemberAct = {
      account_id,
      action: happened === 'member_update' ? 'boost' : happened,
      place: `${this.session_id}:${seq}`,
      member: data as Record<string, unknown>,
    };
    await this.link.deliver({ text: JSON.stringify(act), received_at });
  }

  /** Delivers a message that names a command of the guild's account. */
  private async message(data: unknown, received_at: number): Promise<void> {
    const guild_id = keptId(member(data, 'guild_id'));
    const content = member(data, 'content');
    if (guild_id === null || typeof content !== 'string' || !content.trimStart().startsWith('!')) return;
    const account_id = await this.deps.accountOf(guild_id);
    if (account_id === null) return;
    const command = await this.deps.commands.useOf(account_id, data);
    await this.deliverUse(command && { account_id, command: { ...command } }, received_at);
  }

  /** Acknowledges a slash command in a guild of an account, and returns its use. */
  private async interaction(data: unknown): Promise<CommandUse | null> {
    const guild_id = keptId(member(data, 'guild_id'));
    const account_id = guild_id === null ? null : await this.deps.accountOf(guild_id);
    if (account_id === null) return null;
    const command = await this.deps.commands.interactionOf(account_id, data);
    return command && { account_id, command: { ...command } };
  }

  private async deliverUse(use: CommandUse | null, received_at: number): Promise<void> {
    if (use !== null) await this.link.deliver({ text: JSON.stringify(use), received_at });
  }

  private keep(seq: number): void {
    const { session_id, url, shard } = this;
    if (session_id !== '' && url !== '' && this.seq !== null)
      this.link.keep({ session_id, seq, url, shard: [...shard] });
  }

  private send(op: number, d: unknown): void {
    if (this.socket.readyState === this.socket.OPEN) this.socket.send(JSON.stringify({ op, d }));
  }
}
