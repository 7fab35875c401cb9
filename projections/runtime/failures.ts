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

/** The line that a dead letter keeps: name and message, at most 2000 characters. */
export function describe(error: unknown): string {
  const { code, message, name } = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>;
  const text = typeof message === 'string' ? message : String(error);
  // NUL cannot be stored in Postgres text.
  return `${typeof name === 'string' ? name : 'error'}${typeof code === 'string' ? ` ${code}` : ''}: ${text}`
    .replaceAll('\0', '\ufffd')
    .slice(0, 2000);
}
