const READ_ONLY = '25006';
const LOCK_NOT_AVAILABLE = '55P03';

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

/** A connection whose server must not be used by this process: a standby, or a server that took over. */
export class OutOfService extends Error {
  readonly code = READ_ONLY;
  readonly severity = 'ERROR';
}

/**
 * True when the server at the other end takes no writes any more: another one has its place, and the connection must
 * not be used again.
 */
export const isOutOfService = (error: unknown): boolean => (error as { code?: string }).code === READ_ONLY;

/** True when the wait for a lock was longer than `lock_timeout`. */
export const isLockTimeout = (error: unknown): boolean => (error as { code?: string }).code === LOCK_NOT_AVAILABLE;
