import type { Excuse } from '../../support/printed';

/** What an engine, or the link to it, says while it is away. */
const AWAY = new RegExp(
  [
    // A link that breaks, is refused, or does not answer in time.
    /\b(?:ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT)\b/,
    /Connection terminated|timeout exceeded when trying to connect|Query read timeout|is not queryable/,
    // Kafka and KurrentDB, by what our adapters make of it and by the client's own name.
    /\b(?:EngineUnavailable|KafkaJSNumberOfRetriesExceeded|KafkaJSConnection\w*|KafkaJSRequestTimeoutError)\b/,
    // PostgreSQL ends, starts, has no room for a connection or on its disk, or gave a statement up.
    /\b(?:57P01|57P02|57P03|57014|53100|53300|08P01|08006)\b/,
  ]
    .map(({ source }) => source)
    .join('|'),
);

/** What cannot be done meanwhile, whatever the reason. */
const because = (reason: RegExp): readonly Excuse[] => [
  { message: /^webhook delivery could not be stored$/, reason },
  { message: /^a request failed$/, reason },
  { message: /^an upgrade could not be checked$/, reason },
  { message: /^consumer stopped$/, reason },
  { message: /^work under a lease failed; it begins again$/, reason },
];

/** Errors that a server may log while an engine is away. */
export const ENGINE_AWAY = because(AWAY);
/** The database's disk is full; then the database itself may be away for a while. */
export const DISK_FULL: readonly Excuse[] = [...ENGINE_AWAY, ...because(/\b53100\b/)];
/** The server may open nothing more, not even a connection to its database. */
export const NO_DESCRIPTORS: readonly Excuse[] = [...ENGINE_AWAY, ...because(/\bconnect EMFILE\b/)];
/** A transaction was open when the database's clock jumped: PostgreSQL ends its session, as idle for too long. */
export const SESSION_TIMED_OUT: Excuse = {
  message: /^consumer stopped$/,
  reason: /\b25P03\b|Connection terminated|is not queryable/,
};
/** A test made a consumer stand still, and the watchdog ended it. */
export const STALLED: Excuse = { message: /^consumer stopped$/, reason: /^Stalled / };
/** The broker is unavailable, or starts so slowly that the watchdog restarts a consumer. */
export const BROKER_AWAY: readonly Excuse[] = [...ENGINE_AWAY, STALLED];

/** A newer build's read model took the place of the live one: the older build fills it no more. */
export const TAKEN_OVER: Excuse = { message: /^consumer stopped$/, reason: /^CheckpointLost / };

/** The same, met when the older build began again. */
export const NEWER_ROWS: Excuse = {
  message: /^projection \S+: its rows are of version \d+, this program makes version \d+; run: lumio rebuild \S+$/,
  reason: /^$/,
};

/**
 * A request of the older build lost a deadlock while the newer one changed the tables below it: it is answered 503 and
 * sent again, which the traffic judges.
 */
export const DEADLOCKED: Excuse = { message: /^a request failed$/, reason: /^DatabaseError 40P01 / };

/** The embedded database was killed: the server ends with it. */
export const DATABASE_KILLED: readonly Excuse[] = [
  ...ENGINE_AWAY,
  { message: /^stopping$/, reason: /^PostgreSQL ended \(SIGKILL\)/ },
];
