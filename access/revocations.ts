import type { Queryable } from '../engines/postgres/port';
import type { Logger } from '../engines/log/port';
import { ApiError } from '../kernel/errors';
import { sweepOauth } from './oauth-grants';

/**
 * What no longer holds: one credential, everything of a user, an account's memberships and features, or a user within
 * an account. One that names nobody tells that everybody's features may have changed.
 */
export interface Revocation {
  credential_id: string | null;
  user_id: string | null;
  account_id: string | null;
}

/** Whether it names nobody. */
export const concernsAll = ({ credential_id, user_id, account_id }: Partial<Revocation>): boolean =>
  !credential_id && !user_id && !account_id;

const CHANGED = 'changed:';

/** Names a credential that goes on with other rights than before. */
export const rightsChanged = (credential_id: string): Partial<Revocation> => ({
  credential_id: `${CHANGED}${credential_id}`,
});

/** The credential that a revocation names, and whether it ended; null where it names none. */
export function namedCredential({ credential_id }: Partial<Revocation>): { id: string; ended: boolean } | null {
  if (!credential_id) return null;
  const ended = !credential_id.startsWith(CHANGED);
  return { id: ended ? credential_id : credential_id.slice(CHANGED.length), ended };
}

export interface RevocationTail {
  /** Returns a function that ends it. */
  on(listener: (revocation: Revocation) => void): () => void;
  /**
   * Milliseconds since the tail last saw the table; infinite before the first time, and growing while the database does
   * not answer.
   */
  age_ms(): number;
  stop(): Promise<void>;
}

const POLL_MS = 500;
/**
 * Rows become visible when their transaction commits, not in the order of their ids: the last seconds are read again
 * each time.
 */
const OVERLAP_SECONDS = 10;
const KEEP_SECONDS = 3600;

/**
 * Follows the `revocations` table, so that every node forgets credentials and cuts sockets within a second or two of
 * the commit, whatever the relay lost. Each row is told once. Rows from before the start are not told. Source: spec
 * rulings, "revocation times".
 */
export function createRevocationTail(deps: { db: Queryable; log: Logger }): RevocationTail {
  const listeners = new Set<(revocation: Revocation) => void>();
  const passed_on = new Map<number, number>();
  let started = false;
  let stopped = false;
  let seen_at = Date.now();
  let trimmed_at = 0;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();

  async function poll(): Promise<void> {
    const rows = await deps.db.query(
      `select id, credential_id, user_id, account_id from revocations
       where recorded_at > clock_timestamp() - make_interval(secs => $1) order by id`,
      [OVERLAP_SECONDS + Math.ceil((Date.now() - seen_at) / 1000)],
      'revocations-tail',
    );
    const now = Date.now();
    for (const { id, credential_id, user_id, account_id } of rows) {
      const fresh = !passed_on.has(id);
      passed_on.set(id, now);
      if (fresh && started) for (const listener of listeners) listener({ credential_id, user_id, account_id });
    }
    started = true;
    seen_at = now;
    for (const [id, at] of passed_on) if (now - at > 2000 * OVERLAP_SECONDS) passed_on.delete(id);
    if (now - trimmed_at > 600_000) {
      trimmed_at = now;
      await sweep(deps.db).catch((error: unknown) => {
        // Asked of read models, which may still be built; the next time comes.
        if (!(error instanceof ApiError && error.retry_after_seconds !== undefined)) throw error;
      });
    }
  }

  function next(): void {
    if (stopped) return;
    timer = setTimeout(() => {
      running = poll()
        .catch((error: unknown) => deps.log.warn({ err: error }, 'revocations could not be read; trying again'))
        .then(next);
    }, POLL_MS);
    timer.unref();
  }
  running = poll()
    .catch((error: unknown) => deps.log.warn({ err: error }, 'revocations could not be read; trying again'))
    .then(next);

  return {
    on(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    age_ms: () => (started ? Date.now() - seen_at : Infinity),
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}

/**
 * Drops what can matter no more: revocations that every node has seen, and rows that no living token refers to. The
 * revocation of a key or session that still has its row stays: the event that removes it may be parked, and until it
 * is applied this row alone keeps the credential dead.
 */
async function sweep(db: Queryable): Promise<void> {
  await db.query(
    `delete from revocations r where recorded_at < clock_timestamp() - make_interval(secs => $1)
       and not exists (select 1 from (select id from api_keys union all select id from service_keys
                         union all select id from system_keys union all select id from sessions
                         union all select id from popout_tokens where revoked_at is null
                         union all select client_id from oauth_clients union all select id from oauth_grants) k
                       where k.id = case when r.credential_id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
                                         then r.credential_id::uuid end)`,
    [KEEP_SECONDS],
  );
  await db.query('delete from sessions where expires_at < now()');
  await db.query('delete from ws_tokens where expires_at < now()');
  await db.query('delete from bound_tokens where expires_at < now()');
  await sweepOauth(db);
}
