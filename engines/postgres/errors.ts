/**
 * Lost or refused connections, a server that starts or stops, serialisation and deadlock victims, cancelled statements;
 * of class 25 a server that became a standby (25006) and a transaction that the server ended for its time (25P03,
 * 25P04). The rest of class 25 is a mistake of ours.
 */
const PASSING = /^(?:08|57|40|53|25006|25P03|25P04)/;
const READ_ONLY = '25006';
const LINK = /^(?:E[A-Z]+|Connection terminated|Query read timeout|timeout)/;

/**
 * True when the same statement may succeed later: the engine was away or busy. What it did until then is unknown.
 * False for an error that the statement itself earned.
 */
export function isPassing(error: unknown): boolean {
  const { code, message, severity } = error as { code?: string; message?: string; severity?: string };
  if (severity !== undefined && code !== undefined) return PASSING.test(code);
  return LINK.test(code ?? '') || /terminat|timeout|closed|not queryable|ECONN|EPIPE|socket/i.test(message ?? '');
}

/**
 * No connection to the database could be made: it is away, or refuses the login or the database's name. The cause says
 * which.
 */
export class DatabaseRefused extends Error {
  constructor(cause: unknown) {
    const { code, message, errors } = cause as { code?: string; message?: string; errors?: readonly Error[] };
    // A name with several addresses fails with one error for each, and no text of its own.
    super(message || errors?.map((error) => error.message).join(', ') || code || String(cause), { cause });
  }
}

/**
 * True when the server at the other end takes no writes any more: another one has its place, and the connection must
 * not be used again.
 */
export const isOutOfService = (error: unknown): boolean => (error as { code?: string }).code === READ_ONLY;
