import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../log/port';
import type { Queryable } from '../postgres/port';
import { type Campaign, type Lease, LeaseLost, type Leases } from './port';

export interface PostgresLeasesOptions {
  db: Queryable;
  log: Logger;
  /** After a holder died its lease is free within this time. Default 15 s. */
  ttl_ms?: number;
}

/** Leases in the table `leases`; times are the database's, so that clocks of nodes do not matter. */
export function createPostgresLeases(options: PostgresLeasesOptions): Leases {
  const { db, log, ttl_ms = 15_000 } = options;
  const holder = randomUUID();
  const campaigns = new Set<Campaign>();
  const seconds = ttl_ms / 1000;

  /** The fencing token; null while another process holds it. */
  async function acquire(name: string): Promise<number | null> {
    const [row] = await db.query<{ token: number }>(
      `insert into leases as l (name, holder, token, expires_at)
       values ($1, $2, 1, clock_timestamp() + make_interval(secs => $3))
       on conflict (name) do update
         set holder = excluded.holder, token = l.token + 1, expires_at = clock_timestamp() + make_interval(secs => $3)
         where l.expires_at <= clock_timestamp()
       returning token`,
      [name, holder, seconds],
    );
    return row?.token ?? null;
  }

  async function renew(name: string, token: number): Promise<boolean> {
    const rows = await db.query(
      `update leases set expires_at = clock_timestamp() + make_interval(secs => $3)
       where name = $1 and token = $2 and expires_at > clock_timestamp() returning token`,
      [name, token, seconds],
    );
    return rows.length === 1;
  }

  async function release(name: string, token: number): Promise<void> {
    await db.query(
      `update leases set expires_at = clock_timestamp() where name = $1 and token = $2
         and expires_at > clock_timestamp()`,
      [name, token],
    );
  }

  /** Renews until the signal is aborted; aborts it when the lease is lost, or could be by the time that has passed. */
  async function keep(name: string, token: number, held_from: number, ending: AbortController): Promise<void> {
    let good_until = held_from + ttl_ms;
    const deadline = () => setTimeout(() => ending.abort(new LeaseLost(name)), good_until - performance.now());
    let timer = deadline();
    try {
      for (;;) {
        await pause(ttl_ms / 3, undefined, { signal: ending.signal });
        const asked = performance.now();
        const renewed = await renew(name, token).catch((error: unknown) => {
          log.warn({ err: error, lease: name }, 'a lease could not be renewed; it is tried again while it lasts');
          return undefined;
        });
        if (renewed === false) ending.abort(new LeaseLost(name));
        if (renewed) {
          good_until = asked + ttl_ms;
          clearTimeout(timer);
          timer = deadline();
        }
      }
    } catch (error) {
      if (!ending.signal.aborted) throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async function holdOnce(name: string, work: (lease: Lease) => Promise<void>, stopping: AbortSignal): Promise<void> {
    const asked = performance.now();
    const token = await acquire(name);
    if (token === null) return;
    const ending = new AbortController();
    const onStop = () => ending.abort(stopping.reason);
    stopping.addEventListener('abort', onStop, { once: true });
    if (stopping.aborted) onStop();
    const lease: Lease = {
      name,
      token,
      signal: ending.signal,
      async fence(tx) {
        const rows = await tx.query(
          'select 1 from leases where name = $1 and token = $2 and expires_at > clock_timestamp() for share',
          [name, token],
        );
        if (rows.length === 0) throw new LeaseLost(name);
      },
    };
    log.info({ lease: name, token }, 'a lease was taken');
    const kept = keep(name, token, asked, ending);
    try {
      await work(lease);
    } catch (error) {
      if (!ending.signal.aborted) log.error({ err: error, lease: name }, 'work under a lease failed; it begins again');
    } finally {
      stopping.removeEventListener('abort', onStop);
      ending.abort();
      await kept;
      await release(name, token);
      log.info({ lease: name, token, lost: ending.signal.reason instanceof LeaseLost }, 'a lease was given back');
    }
  }

  return {
    campaign(name, work) {
      const stopping = new AbortController();
      const run = async () => {
        while (!stopping.signal.aborted) {
          try {
            await holdOnce(name, work, stopping.signal);
          } catch (error) {
            log.warn({ err: error, lease: name }, 'a lease could not be asked for; it is tried again');
          }
          // Apart from each other, so that many candidates do not ask at once.
          const wait = (ttl_ms / 3) * (0.5 + Math.random() / 2);
          await pause(wait, undefined, { signal: stopping.signal, ref: false }).catch(() => undefined);
        }
      };
      const running = run();
      const campaign: Campaign = {
        async stop() {
          campaigns.delete(campaign);
          stopping.abort();
          await running;
        },
      };
      campaigns.add(campaign);
      return campaign;
    },
    async close() {
      await Promise.all([...campaigns].map((campaign) => campaign.stop()));
    },
  };
}
