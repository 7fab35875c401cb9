import { randomInt } from 'node:crypto';
import type pg from 'pg';
import { Backoff } from '../../lib/async/retry';
import { pause } from '../../lib/async/signal';
import type { Logger } from '../log/port';
import { keptSession } from './kept-session';

/**
 * A connection that holds one advisory lock until this process ends. The lock is free at once after the end of the
 * process (within half a minute after the loss of its machine), so that other processes need not wait for a timeout.
 * While the connection is down the process seems dead: work that others take over then must tolerate two workers.
 */
export class ProcessSession {
  /** Number of the advisory lock, which is free in the database when this process is dead. */
  readonly lock = randomInt(1, 2 ** 47);
  private readonly closing = new AbortController();
  private holding = false;
  private running: Promise<void> | undefined;
  private resolveFirst!: () => void;
  private readonly first = new Promise<void>((resolve) => (this.resolveFirst = resolve));

  constructor(
    private readonly config: pg.ClientConfig,
    private readonly log: Logger | undefined,
  ) {}

  /** Whether the lock is held at this moment, as far as this process knows. */
  get held(): boolean {
    return this.holding;
  }

  /** Connects on the first call; resolves when the lock is held for the first time. */
  async ready(): Promise<void> {
    this.running ??= this.run();
    await this.first;
  }

  async close(): Promise<void> {
    this.closing.abort();
    this.resolveFirst();
    await this.running;
  }

  private async run(): Promise<void> {
    const { signal: closing } = this.closing;
    const backoff = new Backoff({ first_ms: 100, most_ms: 5000 });
    const session = { config: this.config, name: 'lumio process' };
    while (!closing.aborted) {
      try {
        await keptSession(session, async (client, lost) => {
          await client.query('select pg_advisory_lock($1::bigint)', [this.lock]);
          this.holding = true;
          backoff.reset();
          this.resolveFirst();
          await pause(Infinity, AbortSignal.any([lost, closing]));
          this.holding = false;
          if (!closing.aborted) lost.throwIfAborted();
        });
      } catch (error) {
        const wait_ms = backoff.next();
        const facts = { err: error, failures: backoff.failures };
        this.log?.warn(facts, 'the connection that shows this process to be alive was lost, connecting again');
        await pause(wait_ms, closing);
      }
    }
  }
}
