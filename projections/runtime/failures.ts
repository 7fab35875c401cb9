/**
 * SQLSTATE classes that say nothing about the data: connection, limits, locks, shutdown, serialization, and our own
 * schema or rights.
 */
const INFRASTRUCTURE = new Set(['08', '25', '28', '3D', '40', '42', '53', '55', '57', '58', 'F0', 'XX']);
const SOCKET =
  /^(E(CONN|HOST|NET|TIME|PIPE|AI_|NOTFOUND|NOENT|ADDR|MFILE|NFILE)\w*|UND_ERR\w*|ERR_STREAM\w*|ERR_SOCKET\w*)$/;
/** What `pg` throws without a code when a connection breaks. */
const DRIVER =
  /connection terminated|connection error|timeout exceeded when trying to connect|pool after calling end|client was closed|not queryable/i;

interface Coded {
  code?: unknown;
  message?: unknown;
  name?: unknown;
}

const facts = (error: unknown): Coded => (typeof error === 'object' && error !== null ? (error as Coded) : {});

/**
 * True when the failure is ours (database away, deadlock, disk full, missing table), so that trying again can help and
 * no record is to blame. Everything else is a data error: the record is parked. Design §7.
 */
export function isInfrastructure(error: unknown): boolean {
  const { code, message, name } = facts(error);
  if (typeof code === 'string') {
    if (/^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E')) return INFRASTRUCTURE.has(code.slice(0, 2));
    if (SOCKET.test(code)) return true;
  }
  if (name === 'AbortError' || name === 'TimeoutError') return true;
  return typeof message === 'string' && typeof code !== 'string' && DRIVER.test(message);
}

/** True when the transaction lost against another one: the same batch may be tried again at once. */
export function isContention(error: unknown): boolean {
  const { code } = facts(error);
  return typeof code === 'string' && /^(40|55P03)/.test(code);
}

/** The line that a dead letter keeps: name and message, at most 2000 characters. */
export function describe(error: unknown): string {
  const { code, message, name } = facts(error);
  const text = typeof message === 'string' ? message : String(error);
  // NUL cannot be stored in Postgres text.
  return `${typeof name === 'string' ? name : 'error'}${typeof code === 'string' ? ` ${code}` : ''}: ${text}`
    .replaceAll('\0', '�')
    .slice(0, 2000);
}
