import type { Slots } from '../../../lib/async/slots';
import type { Vendor } from '../../../domain/common/vendors';
import type { Json } from '../../../lib/json/json';
import type { Outcome } from '../webhook/webhook';

/** Connection of an account, or of the deployment, at a vendor. */
export interface LinkedConnection {
  /** Id of the channel's connection; for a connection of the deployment itself (a bot) a name of its own. */
  connection_id: string;
  /** Null for a connection that serves many accounts: there the records name their account. */
  account_id: string | null;
  /** The vendor's own id of the channel, guild or user. */
  channel_id: string;
  /** The app that the token was issued to, where known. */
  client_id?: string | null;
  /** A changed value restarts the connection, with the kept state of the same channel. */
  since?: string;
  /** True when its owner must connect it again: no process holds it, and its state is kept until then. */
  flagged?: true;
  /** First part of its link's name, where the link is a separate kind of work; default: the vendor. */
  kind?: string;
}

/** Connections to one vendor, whichever process holds them. */
export interface LinkedConnections {
  /** Existing connections; {@link LinkedConnection.flagged} ones are not held. */
  list(vendor: Vendor): Promise<readonly LinkedConnection[]>;
  /** Calls the listener when the list may have changed; returns the unsubscribe function. */
  onChange(listener: () => void): () => void;
}

/** A message of a vendor, as it arrived. */
export interface Received {
  /** JSON text. */
  text: string;
  /** Unix milliseconds. */
  received_at: number;
  /** Time of the vendor's sign of life, where the message was read later. Default: `received_at`. */
  alive_at?: number;
  /** The parsed text, where the adapter has it already. */
  value?: unknown;
  /** The account's connection of the message, where a link serves many; default: the link's own. */
  connection?: LinkedConnection;
  /** Age of the message at its arrival, by the vendor's clock, where the adapter knows it. */
  age_ms?: number;
  /** Id of the event for both holders of a handover, where the vendor gives each holder another one. */
  shared_id?: string;
}

/**
 * Holder that stores a message which a former holder received: the former holder, its successor, or both under one id,
 * where the vendor's clock cannot decide.
 */
export type Owner = 'former' | 'successor' | { shared_id: string };

/** State of a connection for its account and the operator. */
export type LinkStatus =
  /** Opened, or being opened, without a fault. */
  | 'connecting'
  | 'connected'
  /** Works, but without something that the vendor refused: a scope, a subscription, a quota. */
  | 'degraded'
  /** Failed temporarily; retried after a pause. */
  | 'retrying'
  /** Only its owner can repair it. */
  | 'reconnect_required';

/** The connection cannot be repaired without its owner: it is flagged, and not retried. */
export class ConnectionRefused extends Error {
  /** @param reason a word: `authorization_revoked`, `user_removed`, `version_removed`, `no_token` */
  constructor(readonly reason: string) {
    super(`the vendor refuses the connection: ${reason}`);
    this.name = 'ConnectionRefused';
  }
}

/** The vendor requires a pause before the next try. */
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

/** The connection has ended in an ordinary way. */
export class LinkLost extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'LinkLost';
  }
}

/** Interface of the runtime for an adapter, for one connection that this process holds. */
export interface Link {
  readonly connection: LinkedConnection;
  /** Number of this holding, greater than the number of each former holder of the connection. */
  readonly holding: number;
  /**
   * Aborted when this process gives the connection up: another process takes it, it no longer exists, or this process
   * stops.
   */
  readonly signal: AbortSignal;
  /**
   * Returns a valid token of this connection. `refused` is the token that the vendor has just refused.
   * @throws ConnectionRefused without a token, when its owner must connect again
   */
  token(refused?: string): Promise<string>;
  /**
   * Normalises and stores a message, in the order of the calls. Resolves when it is durable, or when no process will
   * store it: a vendor that waits for an acknowledgement gets it then. Never rejects. An adapter need not await it, but
   * should read no further while {@link full}.
   */
  deliver(received: Received): Promise<void>;
  /** True when too many bytes wait to be stored, so that the adapter should pause reading. */
  readonly full: boolean;
  /** Resolves when the link is not full. */
  drained(): Promise<void>;
  /**
   * Sets the status of the connection, for its account, log and metrics. `detail` is a sentence for people, without
   * secrets.
   */
  status(status: LinkStatus, detail?: string): void;
  /**
   * Stores the state with which a successor continues ({@link Adapter.resume}): ids of sessions, tokens of pages.
   * Nothing personal. The last call wins; the state is written soon, not at once.
   */
  keep(state: Json): void;
  /**
   * Stores the same state before all of the connection is open, for {@link Adapter.ownerOf}: a former holder
   * whose time ends by then does not store what is received here already.
   */
  keepBeginning(state: Json): void;
  /** Reports a sign of life from the vendor, of any kind. Unix milliseconds. */
  heard(at: number): void;
  /** Time of the last sign of life, to this process or the former one; null when never. */
  readonly last_heard: number | null;
  /** True when the former process reads on until this one does: nothing is missed between them. */
  readonly handed_over: boolean;
  /**
   * Reports a gap: messages of the vendor between these moments may be lost (Unix milliseconds); `from` is null when
   * unknown. Appears in log, metric and status.
   */
  missed(gap: { from: number | null; to: number; detail: string }): void;
}

/**
 * Contract of a vendor whose events are fetched instead of pushed. A file or folder of `ingest/` implements it, over a
 * client of `vendors/<vendor>/` that is passed in; the runtime does the rest: which process holds which connection,
 * retries with pauses, storing, status. See docs/adding-a-platform.md.
 */
export interface Adapter<Session extends AdapterSession = AdapterSession> {
  readonly vendor: Vendor;
  /** Its connections, where they are not those of accounts. */
  readonly connections?: LinkedConnections;
  /**
   * Limits concurrent openings; a connection is taken from its former holder while it has a slot. Default: all at once.
   */
  readonly opening?: Pick<Slots, 'use'>;
  /** Opens a connection without kept state. A rejection is retried. */
  connect(link: Link): Promise<Session>;
  /**
   * Opens a connection after an earlier session, of this process or another, that kept `state`: continues there, and
   * fetches or reports what was missed meanwhile.
   */
  resume(link: Link, state: Json): Promise<Session>;
  /** Converts a vendor's message to an outcome. Pure, and never throws for any input of a vendor. */
  normalise(received: Received, connection: LinkedConnection): Outcome;
  /** Ends a session politely; received messages are delivered first. Must accept a session that has ended by itself. */
  stop(session: Session): Promise<void>;
  /**
   * Owner of a message that this process received after it has been replaced, because it was paused, cut off, or hands
   * the connection over. `state`: kept by the present holder; `holding`: of this process; there may be other holders
   * between both. Default: the successor.
   */
  ownerOf?(received: Received, state: Json, holding: number): Owner;
}

/** An open connection. */
export interface AdapterSession {
  /**
   * Settles when the session has ended by itself: rejects with the reason, resolves when it should simply be opened
   * again.
   */
  readonly ended: Promise<void>;
}
