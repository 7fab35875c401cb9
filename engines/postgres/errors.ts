const READ_ONLY = '25006';
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * No connection to the database could be made: the server is unavailable, or refuses the login or the database's name;
 * see the cause.
 */
export class DatabaseRefused extends Error {
  constructor(cause: unknown) {
    const { code, message, errors } = cause as { code?: string; message?: string; errors?: readonly Error[] };
    // A host name with several addresses fails with an error for each, without a message of its own.
    super(message || errors?.map((error) => error.message).join(', ') || code || String(cause), { cause });
  }
}

/** The connection's server must not be used by this process: a standby, or a server that took over. */
export class OutOfService extends Error {
  readonly code = READ_ONLY;
  readonly severity = 'ERROR';
}

/**
 * True when the server accepts no writes any more: another server is the primary, and the connection must not be used
 * again.
 */
export const isOutOfService = (error: unknown): boolean => (error as { code?: string }).code === READ_ONLY;

/** True when the wait for a lock was longer than `lock_timeout`. */
export const isLockTimeout = (error: unknown): boolean => (error as { code?: string }).code === LOCK_NOT_AVAILABLE;
