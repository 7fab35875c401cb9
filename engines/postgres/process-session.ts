import { randomInt } from 'node:crypto';
import type pg from 'pg';
import { Backoff } from '../../kernel/retry';
import { pause } from '../../kernel/signal';
import type { Logger } from '../log/port';
import { keptSession } from './kept-session';

/**
 * A connection that holds one advisory lock for as long as this process lives. Others see at once that the lock is free
 * when the process is gone (within half a minute when its whole machine is), and need not wait for a time to run out.
 * While the link is down the process looks dead to others: what they take over then must bear being done by two.
 */
export class ProcessSession {
  /** Number of the advisory lock: free in the database when this process is dead. */
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

  /** Connects when nobody asked for it before, and resolves when the lock was held for the first time. */
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
