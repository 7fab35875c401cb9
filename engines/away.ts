/**
 * An engine did not do in time what it was asked, and may do it later: it is away, busy or changing its leader. Whether
 * it was done is unknown. The front door answers 503 with `Retry-After`.
 */
export class EngineAway extends Error {
  constructor(engine: string, cause: unknown) {
    super(`${engine} is away: ${cause instanceof Error ? cause.message.split('\n')[0] : String(cause)}`, { cause });
    this.name = 'EngineAway';
  }
}
