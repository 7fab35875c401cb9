import { BrokenCircuitError, circuitBreaker, type CircuitBreakerPolicy, handleWhen, SamplingBreaker } from 'cockatiel';
import { LRUCache } from 'lru-cache';

/** Shops have hosts of their own. */
const MAX_HOSTS = 1_000;
const MAX_PARTS = 10_000;
const WINDOW_MS = 30_000;
/**
 * A circuit opens when more than half of at least five calls of half a minute failed, and is tried after ten seconds.
 */
const CIRCUIT = { threshold: 0.5, duration: WINDOW_MS, minimumRps: 5 / 30 };
const HALF_OPEN_MS = 10_000;
/** Failures of one part in a window that count against its host: a single part cannot open the host's circuit. */
const COUNTED_FAILURES = 2;

/** The caller gave the call up, which is no failure of the host. */
export class GivenUp extends Error {}

/** A failure of a part that does not count against its host. */
class OfPart extends Error {
  constructor(readonly failure: unknown) {
    super('a part of the host keeps failing');
  }
}

interface Part {
  circuit: CircuitBreakerPolicy;
  /** Failures that count against the host, since this time (`performance.now`). */
  counted: number;
  since: number;
}

/** Circuits of a client: one for each host, and one for each part of a host whose failures are its own. */
export class Circuits {
  private readonly broken = new Set<string>();
  private readonly hosts = new LRUCache<string, CircuitBreakerPolicy>({
    max: MAX_HOSTS,
    disposeAfter: (_circuit, host) => {
      if (this.broken.delete(host)) this.onChanged(this.broken.size);
    },
  });
  private readonly parts = new LRUCache<string, Part>({ max: MAX_PARTS });

  /** @param onChanged called with the number of hosts whose circuit is open */
  constructor(private readonly onChanged: (open: number) => void) {
    onChanged(0);
  }

  /**
   * Runs calls of a host, or of a part of it. They throw as `work`, and BrokenCircuitError while the circuit of the
   * host or the part is open.
   */
  of(host: string, part?: string): <T>(work: () => Promise<T>) => Promise<T> {
    const circuit = this.circuitOf(host);
    if (part === undefined) return (work) => circuit.execute(work);
    return (work) =>
      circuit
        .execute(() => this.runPart(`${host} ${part}`, work))
        .catch((error: unknown) => {
          throw error instanceof OfPart ? error.failure : error;
        });
  }

  private async runPart<T>(key: string, work: () => Promise<T>): Promise<T> {
    const part = this.parts.get(key) ?? { circuit: circuitBreaker(failures, options()), counted: 0, since: 0 };
    this.parts.set(key, part);
    try {
      return await part.circuit.execute(work);
    } catch (error) {
      if (error instanceof GivenUp) throw error;
      throw !(error instanceof BrokenCircuitError) && counts(part) ? error : new OfPart(error);
    }
  }

  private circuitOf(host: string): CircuitBreakerPolicy {
    const known = this.hosts.get(host);
    if (known) return known;
    const made = circuitBreaker(failures, options());
    made.onBreak(() => this.onChanged(this.broken.add(host).size));
    made.onReset(() => {
      this.broken.delete(host);
      this.onChanged(this.broken.size);
    });
    this.hosts.set(host, made);
    return made;
  }
}

const failures = handleWhen((error) => !(error instanceof GivenUp || error instanceof OfPart));
const options = () => ({ halfOpenAfter: HALF_OPEN_MS, breaker: new SamplingBreaker(CIRCUIT) });

function counts(part: Part): boolean {
  const now = performance.now();
  if (part.counted === 0 || now - part.since > WINDOW_MS) Object.assign(part, { counted: 0, since: now });
  part.counted += 1;
  return part.counted <= COUNTED_FAILURES;
}
