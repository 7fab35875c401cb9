import { randomInt } from 'node:crypto';
import pg from 'pg';
import type { Logger } from '../log/port';
import { KEEPALIVE } from './session-settings';

/**
 * A connection that holds one advisory lock for as long as this process lives. Others see at once that the lock is free
 * when the process is gone (within half a minute when its whole machine is), and need not wait for a time to run out.
 * While the link is down the process looks dead to others: what they take over then must bear being done by two.
 */
export class ProcessSession {
  /** Number of the advisory lock: free in the database when this process is dead. */
  readonly lock = randomInt(1, 2 ** 47);
  private closed = false;
  private holding = false;
  private interrupt: (() => void) | undefined;
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
    this.closed = true;
    this.resolveFirst();
    this.interrupt?.();
    await this.running;
  }

  private async run(): Promise<void> {
    for (let failures = 0; !this.closed;) {
      try {
        await this.hold(() => (failures = 0));
      } catch (error) {
        failures += 1;
        this.log?.warn(
          { err: error, failures },
          'the connection that shows this process to be alive was lost, connecting again',
        );
        await this.pause(Math.min(50 * 2 ** failures, 5000));
      }
    }
  }

  private async hold(held: () => void): Promise<void> {
    const client = new pg.Client({
      ...this.config,
      application_name: 'lumio process',
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
      options: `${this.config.options ?? ''} ${KEEPALIVE}`,
    });
    let lost: Error | undefined;
    const fail = (error: Error) => {
      lost ??= error;
      this.interrupt?.();
    };
    client.on('error', fail);
    client.on('end', () => fail(new Error('the server closed the connection')));
    try {
      await client.connect();
      await client.query('select pg_advisory_lock($1::bigint)', [this.lock]);
      this.holding = true;
      held();
      this.resolveFirst();
      while (!this.closed && !lost) {
        await this.pause(5000);
        if (!this.closed && !lost) await client.query({ text: 'select 1', query_timeout: 5000 } as pg.QueryConfig);
      }
      if (lost && !this.closed) throw lost;
    } finally {
      this.holding = false;
      const ended = client
        .end()
        .catch((error: Error) => this.log?.debug({ err: error }, 'the connection of the process ended badly'));
      // The goodbye of a link that is silent would never be answered.
      if (!lost) await Promise.race([ended, new Promise((resume) => setTimeout(resume, 1000).unref())]);
    }
  }

  private async pause(ms: number): Promise<void> {
    if (this.closed) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.interrupt = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.interrupt = undefined;
  }
}
