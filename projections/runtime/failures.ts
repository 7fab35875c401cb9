import { DataError } from '../../kernel/projection';
import { UnreadableEvent } from '../../kernel/upcasters';

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

/**
 * SQLSTATE classes of what a value can be to blame for: no such number or date, a constraint, more than an index takes.
 */
const DATA = new Set(['22', '23', '54']);
/** Our own statement or schema is wrong, or we have no right to it. */
const OURS = '42';

/**
 * `apply` failed for no reason that was declared: a mistake of the program. Nothing is skipped, the projection stops.
 */
export class ProjectionFault extends Error {
  constructor(
    projection: string,
    override readonly cause: unknown,
  ) {
    super(`projection ${projection} stopped: ${describe(cause)}`);
    this.name = 'ProjectionFault';
  }
}

interface Coded {
  code?: unknown;
  message?: unknown;
  name?: unknown;
}

const facts = (error: unknown): Coded => (typeof error === 'object' && error !== null ? (error as Coded) : {});

/**
 * Why `apply` failed: the record's `data`, which parks it; something `passing` (database away, deadlock, disk full); or
 * a `fault` of the program. Design §7.
 */
export function failureKind(error: unknown): 'data' | 'passing' | 'fault' {
  if (error instanceof DataError) return 'data';
  // What only a newer build can read is nobody's fault, and no letter: it waits where it is.
  if (error instanceof UnreadableEvent) return error.newer ? 'passing' : 'data';
  const state = sqlState(error);
  if (state !== null && DATA.has(state)) return 'data';
  return isInfrastructure(error) && state !== OURS ? 'passing' : 'fault';
}

/** The class of a failure that PostgreSQL told. */
function sqlState(error: unknown): string | null {
  const { code } = facts(error);
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E') ? code.slice(0, 2) : null;
}

/**
 * True when the failure is ours (database away, deadlock, disk full, missing table), so that trying again can help and
 * no record is to blame.
 */
export function isInfrastructure(error: unknown): boolean {
  const { code, message, name } = facts(error);
  const state = sqlState(error);
  if (state !== null) return INFRASTRUCTURE.has(state);
  if (typeof code === 'string' && SOCKET.test(code)) return true;
  if (name === 'AbortError' || name === 'TimeoutError' || name === 'EngineAway') return true;
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
