import type { Excuse } from '../../support/printed';

/** What an engine, or the link to it, says while it is away. */
const AWAY = new RegExp(
  [
    // A link that breaks, is refused, or does not answer in time.
    /\b(?:ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT)\b/,
    /Connection terminated|timeout exceeded when trying to connect|Query read timeout|is not queryable/,
    // Kafka and KurrentDB, by what our adapters make of it and by the client's own name.
    /\b(?:EngineAway|KafkaJSNumberOfRetriesExceeded|KafkaJSConnection\w*|KafkaJSRequestTimeoutError)\b/,
    // PostgreSQL ends, starts, has no room for a connection or on its disk, or gave a statement up.
    /\b(?:57P01|57P02|57P03|57014|53100|53300|08P01|08006)\b/,
  ]
    .map(({ source }) => source)
    .join('|'),
);

/** Errors that a server may log while an engine is away. */
export const ENGINE_AWAY: readonly Excuse[] = [
  { message: /^webhook delivery could not be stored$/, reason: AWAY },
  { message: /^a request failed$/, reason: AWAY },
  { message: /^an upgrade could not be checked$/, reason: AWAY },
  { message: /^consumer stopped$/, reason: AWAY },
  { message: /^work under a lease failed; it begins again$/, reason: AWAY },
];

/** A test made a consumer stand still, and the watchdog ended it. */
export const STALLED: Excuse = { message: /^consumer stopped$/, reason: /^Stalled / };

/** The embedded database was killed: the server ends with it. */
export const DATABASE_KILLED: readonly Excuse[] = [
  ...ENGINE_AWAY,
  { message: /^stopping$/, reason: /^PostgreSQL ended \(SIGKILL\)/ },
];
