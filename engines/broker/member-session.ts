import { randomInt } from 'node:crypto';
import pg from 'pg';
import type { Logger } from '../log/port';

/**
 * A connection that holds one advisory lock for as long as this process lives. Other members see at once that the lock is free when
 * the process is gone, and need not wait for its heartbeats to run out. While the link is down the members of this process look dead to
 * others; that costs a hand-over, never a record, since checkpoints are fenced.
 */
export class MemberSession {
  readonly lock = randomInt(1, 2 ** 47);
  private closed = false;
  private interrupt: (() => void) | undefined;
  private readonly running: Promise<void>;
  private resolveFirst!: () => void;
  /** Resolves when the lock was held for the first time. */
  readonly ready = new Promise<void>((resolve) => (this.resolveFirst = resolve));

  constructor(
    private readonly config: pg.ClientConfig,
    private readonly log: Logger | undefined,
  ) {
    this.running = this.run();
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
      application_name: 'lumio broker member',
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
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
      held();
      this.resolveFirst();
      while (!this.closed && !lost) {
        await this.pause(5000);
        if (!this.closed && !lost) await client.query({ text: 'select 1', query_timeout: 5000 } as pg.QueryConfig);
      }
      if (lost && !this.closed) throw lost;
    } finally {
      const ended = client
        .end()
        .catch((error: Error) => this.log?.debug({ err: error }, 'member connection ended badly'));
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
