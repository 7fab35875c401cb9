import type { WebSocket } from 'ws';
import { NotSent } from '../../kernel/job';

/** Where the gateway is, and how many sessions may be begun still. */
export interface GatewayPlace {
  url: string;
  /** Recommended number of shards. */
  shards: number;
  remaining: number;
  /** Milliseconds until it is the whole number again. */
  reset_after_ms: number;
}

/** Discord's gateway. */
export interface DiscordGateway {
  /** @throws as `HttpClient.ask`; 401 for a token that is none */
  place(token: string): Promise<GatewayPlace>;
  /**
   * A socket that is being opened.
   * @throws NotSent for an address that is none of Discord's, wherever it was said
   */
  socket(url: string): WebSocket;
}

/** A limited group of calls. */
export interface DiscordRoute {
  /** Method and path without ids. */
  name: string;
  /** Id of the channel or server, which has limits of its own. */
  major: string;
}

/** Limits as an answer of Discord announces them. */
export interface DiscordLimits {
  /** Discord's name of the bucket; null where the answer names none. */
  bucket: string | null;
  limit: number;
  remaining: number;
  reset_after_ms: number;
}

/** A call that was allowed. */
export interface TakenCall {
  /** Key of its bucket. */
  key: string;
  /** Milliseconds until its turn among all calls of the bot. */
  turn_ms: number;
}

/** Rate limits of Discord's REST, shared by all processes. */
export interface DiscordBuckets {
  /** Takes a call of the route's bucket, or returns the milliseconds to wait. */
  take(route: DiscordRoute): Promise<TakenCall | { wait_ms: number }>;
  /** Takes over the limits of the call's answer; null where the answer has none. */
  answered(route: DiscordRoute, taken: TakenCall, limits: DiscordLimits | null): Promise<void>;
  /** Stops calls of the bucket after a refusal; `everywhere` stops those of all buckets. */
  refused(taken: TakenCall, retry_after_ms: number, everywhere: boolean): Promise<void>;
}

/** A text channel of a server. */
export interface DiscordChannel {
  id: string;
  name: string;
  /** Discord's number: 0 is a text channel, 5 one of announcements. */
  type: number;
}

/** Discord refused a call: nothing was done. */
export class DiscordRefused extends Error {
  constructor(
    readonly status: number,
    /** Discord's number of the error. */
    readonly code: number | null,
    message: string,
    /** Names of the fields that Discord refused, as paths (`3.name`). */
    readonly fields: readonly string[] = [],
  ) {
    super(message);
    this.name = 'DiscordRefused';
  }
}

/** A limit of Discord's REST: nothing was sent. */
export class DiscordLimited extends NotSent {
  constructor(readonly retry_after_ms: number) {
    super('a limit of Discord is reached');
    this.name = 'DiscordLimited';
  }
}

/** Owner and roles of a server. */
export interface DiscordGuildRoles {
  owner_id: string | null;
  /** Permission bits by role; the role of everybody has the server's id. */
  permissions: ReadonlyMap<string, bigint>;
}

/** A command that Discord shows to the members of a server. */
export interface SlashCommand {
  name: string;
  description: string;
}

/**
 * Calls of Discord's REST in the bot's name.
 * @throws DiscordRefused, NotSent, OutcomeUnknown
 */
export interface DiscordRest {
  /** Text channels of a server, in their order. */
  textChannels(guild_id: string): Promise<DiscordChannel[]>;
  /** Owner and roles of a server. */
  roles(guild_id: string): Promise<DiscordGuildRoles>;
  /** Posts a message that pings nobody; returns its id. */
  post(channel_id: string, message: { text: string; reply_to?: string | null }): Promise<string>;
  /** Id of the application whose bot this is. */
  applicationId(): Promise<string>;
  /** Replaces all commands of the bot in a server. */
  registerCommands(application_id: string, guild_id: string, commands: readonly SlashCommand[]): Promise<void>;
  /** Acknowledges an interaction, so that it can be answered later. */
  acknowledge(interaction: { id: string; token: string }): Promise<void>;
  /** Answers an interaction in place of acknowledging it; only its user sees the text. */
  refuse(interaction: { id: string; token: string }, text: string): Promise<void>;
  /** Answers an acknowledged interaction. */
  answerInteraction(application_id: string, token: string, text: string): Promise<void>;
}
