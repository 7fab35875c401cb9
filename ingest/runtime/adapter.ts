import type { Slots } from '../../kernel/slots';
import type { Vendor } from '../../domain/vendors';
import type { Json } from '../../kernel/json';
import type { Outcome } from './webhook';

/** What an account, or the deployment, is connected to at a vendor. */
export interface LinkedConnection {
  /** Of the channel's connection; for what the deployment itself holds (a bot) a name of its own. */
  connection_id: string;
  /** Null for what serves many accounts at once: there the records say whose they are. */
  account_id: string | null;
  /** The vendor's own id of the channel, guild or user. */
  channel_id: string;
  /** The app that its token was given to, where that is known. */
  client_id?: string | null;
  /** Another one than before means: begin anew, with what was kept of the same channel. */
  since?: string;
  /** True when its owner must connect it again: nobody holds it, and its state is kept until then. */
  flagged?: true;
}

/** What is connected to one vendor at this moment, whichever process holds it. */
export interface LinkedConnections {
  /** Connections that exist; those that are {@link LinkedConnection.flagged} are not held. */
  list(vendor: Vendor): Promise<readonly LinkedConnection[]>;
  /** Calls back when the answer may be another one; answers with what ends that. */
  onChange(listener: () => void): () => void;
}

/** Something that a vendor said, as it arrived. */
export interface Received {
  /** JSON text. */
  text: string;
  /** Unix milliseconds. */
  received_at: number;
  /** When the vendor gave this sign of life, where it was read later. Default: `received_at`. */
  alive_at?: number;
  /** The text, parsed, where the adapter has done that already. */
  value?: unknown;
  /** How old it was when it arrived, by the vendor's clock, where the adapter knows that. */
  age_ms?: number;
}

/** How a connection is, as its account and the operator see it. */
export type LinkStatus =
  /** Opened, or being opened, and nothing is wrong. */
  | 'connecting'
  | 'connected'
  /** Works, but lacks something that the vendor refused: a scope, a subscription, a quota. */
  | 'degraded'
  /** Failed in passing; it is tried again after a pause. */
  | 'retrying'
  /** Nobody but its owner can mend it. */
  | 'reconnect_required';

/** The connection cannot be mended without its owner: it is flagged, and not tried again. */
export class ConnectionRefused extends Error {
  /** @param reason a word: `authorization_revoked`, `user_removed`, `version_removed`, `no_token` */
  constructor(readonly reason: string) {
    super(`the vendor refuses the connection: ${reason}`);
    this.name = 'ConnectionRefused';
  }
}

/** The vendor asks for a pause before the next try. */
export class PauseAsked extends Error {
  constructor(
    message: string,
    readonly pause_ms: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'PauseAsked';
  }
}

/** The connection has ended in a way that every connection may end in. */
export class LinkLost extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'LinkLost';
  }
}

/** What the runtime gives an adapter for one connection that this process holds. */
export interface Link {
  readonly connection: LinkedConnection;
  /** Aborted when the connection is given up: another process should have it, it is gone, or this process stops. */
  readonly signal: AbortSignal;
  /**
   * A token that works, of this connection. `refused` names the one that the vendor has just refused.
   * @throws ConnectionRefused when there is none and its owner must connect anew
   */
  token(refused?: string): Promise<string>;
  /**
   * Normalised and stored, in the order of the calls. Resolves when it is durable, or is known to be stored by nobody:
   * a vendor that waits for an acknowledgement gets it then. Never rejects. An adapter need not wait for it, but should
   * read no further while {@link full}.
   */
  deliver(received: Received): Promise<void>;
  /** Whether so much waits to be stored that no more should be read from the vendor. */
  readonly full: boolean;
  /** Resolves when it is not. */
  drained(): Promise<void>;
  /** Shown in the status of the connection, in log and metrics. `detail` is a sentence for people, without secrets. */
  status(status: LinkStatus, detail?: string): void;
  /**
   * Keeps what a successor needs to go on from here ({@link Adapter.resume}): ids of sessions, tokens of pages. Nothing
   * personal. What is kept last counts; it is written soon, not at once.
   */
  keep(state: Json): void;
  /** The vendor gave a sign of life, whatever it said. Unix milliseconds. */
  heard(at: number): void;
  /** When it last did so, to this process or the one before; null when never. */
  readonly last_heard: number | null;
  /** The process before reads on until this one does: nothing is missed between them. */
  readonly handed_over: boolean;
  /**
   * What was said at the vendor between these moments may not have been received (Unix milliseconds); `from` null when
   * unknown. Told in log, metric and status.
   */
  missed(gap: { from: number | null; to: number; detail: string }): void;
}

/**
 * A vendor whose events are fetched instead of pushed to us: the one contract of all of them. A file or folder of
 * `ingest/` implements it, over a client of `vendors/<vendor>/` that is passed in; the runtime does the rest: which
 * process holds which connection, trying again with pauses, storing, status. See docs/adding-a-platform.md.
 */
export interface Adapter<Session extends AdapterSession = AdapterSession> {
  readonly vendor: Vendor;
  /** Turns to open a connection, which is taken from its former holder in its turn. Default: all at once. */
  readonly opening?: Pick<Slots, 'use'>;
  /** Opens the connection where nothing is known of an earlier one. Rejects when that fails; it is then tried again. */
  connect(link: Link): Promise<Session>;
  /**
   * Opens it after an earlier one, of this process or of another, that kept `state`: goes on where that ended, and
   * fetches or tells what was missed meanwhile.
   */
  resume(link: Link, state: Json): Promise<Session>;
  /** What a vendor's words mean. Pure, and never throws for what a vendor can say. */
  normalise(received: Received, connection: LinkedConnection): Outcome;
  /** Ends a session politely; what was received before is delivered. Must bear a session that has ended by itself. */
  stop(session: Session): Promise<void>;
  /**
   * Whether a successor that kept `state` cannot have received this: a process that was paused or cut off stores such
   * words alone when it finds itself replaced. `own`: what this process has kept; there may be others between both.
   * Default: never.
   */
  beforeSuccessor?(received: Received, state: Json, own: Json): boolean;
}

/** An open connection. */
export interface AdapterSession {
  /** Settles when it has ended by itself: rejects with why, resolves when it should simply be opened again. */
  readonly ended: Promise<void>;
}
