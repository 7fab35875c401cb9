/** `apply` failed without a declared reason: a fault of the program. Nothing is skipped, the projection stops. */
export class ProjectionFault extends Error {
  constructor(
    projection: string,
    override readonly cause: unknown,
  ) {
    super(`projection ${projection} stopped: ${describe(cause)}`);
    this.name = 'ProjectionFault';
  }
}

/** Error text of a dead letter: name and message, at most 2000 characters. */
export function describe(error: unknown): string {
  const { code, message, name } = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>;
  const text = typeof message === 'string' ? message : String(error);
  // NUL cannot be stored in Postgres text.
  return `${typeof name === 'string' ? name : 'error'}${typeof code === 'string' ? ` ${code}` : ''}: ${text}`
    .replaceAll('\0', '\ufffd')
    .slice(0, 2000);
}
