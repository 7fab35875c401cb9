import type { Queryable } from '../../engines/postgres/port';
import type { Logger } from '../../engines/log/port';
import { ApiError } from '../../kernel/errors';
import { runEvery } from '../../lib/async/run-every';
import { sweepOauth } from './tokens/oauth-grants';

/**
 * A revocation: of one credential, everything of a user, an account's memberships and features, or a user within an
 * account. Without any id, everybody's features may have changed.
 */
export interface Revocation {
  credential_id: string | null;
  user_id: string | null;
  account_id: string | null;
}

/** Whether a revocation names no id. */
export const concernsAll = ({ credential_id, user_id, account_id }: Partial<Revocation>): boolean =>
  !credential_id && !user_id && !account_id;

const CHANGED = 'changed:';

/** Revocation for a credential whose rights have changed without its end. */
export const rightsChanged = (credential_id: string): Partial<Revocation> => ({
  credential_id: `${CHANGED}${credential_id}`,
});

/** The credential of a revocation, and whether it ended; null without one. */
export function namedCredential({ credential_id }: Partial<Revocation>): { id: string; ended: boolean } | null {
  if (!credential_id) return null;
  const ended = !credential_id.startsWith(CHANGED);
  return { id: ended ? credential_id : credential_id.slice(CHANGED.length), ended };
}

export interface RevocationTail {
  /** Returns an unsubscribe function. */
  on(listener: (revocation: Revocation) => void): () => void;
  /**
   * Milliseconds since the last successful read of the table; infinite before the first, and growing while the database
   * does not answer.
   */
  age_ms(): number;
  stop(): Promise<void>;
}

const POLL_MS = 500;
/** Rows become visible on commit, not in the order of their ids, so each poll reads the last seconds again. */
const OVERLAP_SECONDS = 10;
const KEEP_SECONDS = 3600;
const SWEEP_MS = 600_000;

/**
 * Polls the `revocations` table, so that every node drops cached credentials and closes sockets within a second or two
 * of the commit, even when the relay loses a message. Delivers each row once, except rows from before the start.
 * Source: spec rulings, "revocation times".
 */
export function createRevocationTail(deps: { db: Queryable; log: Logger }): RevocationTail {
  const listeners = new Set<(revocation: Revocation) => void>();
  const passed_on = new Map<number, number>();
  let started = false;
  let stopped = false;
  let seen_at = Date.now();
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

  // Separate from the polls, because the amount to delete depends on callers and must not delay a revocation.
  let sweeping: Promise<void> = Promise.resolve();
  const sweepNow = () =>
    (sweeping = sweep(deps.db).catch((error: unknown) => {
      // The read models may still be building; the next sweep retries.
      if (error instanceof ApiError && error.retry_after_seconds !== undefined) return;
      deps.log.warn({ err: error }, 'expired credentials could not be deleted; trying again');
    }));
  void sweepNow();
  const endSweeping = runEvery(SWEEP_MS, sweepNow, () => undefined);

  return {
    on(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    age_ms: () => (started ? Date.now() - seen_at : Infinity),
    async stop() {
      stopped = true;
      clearTimeout(timer);
      endSweeping();
      await Promise.all([running, sweeping]);
    },
  };
}

/**
 * Deletes revocations that every node has seen, and expired sessions and tokens. Keeps the revocation of a key or
 * session whose row still exists: the event that removes the row may be parked, and until then only the revocation
 * blocks the credential.
 */
async function sweep(db: Queryable): Promise<void> {
  await db.query(
    `delete from revocations r where recorded_at < clock_timestamp() - make_interval(secs => $1)
       and not exists (select 1 from (select id from api_keys union all select id from service_keys
                         union all select id from system_keys union all select id from sessions
                         union all select id from popout_tokens where revoked_at is null
                         union all select id from overlay_tokens union all select id from widget_tokens
                         union all select client_id from oauth_clients union all select id from oauth_grants) k
                       where k.id = case when r.credential_id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
                                         then r.credential_id::uuid end)`,
    [KEEP_SECONDS],
  );
  await db.query('delete from sessions where expires_at < now()');
  await db.query('delete from ws_tokens where expires_at < now()');
  await db.query('delete from bound_tokens where expires_at < now()');
  await db.query('delete from overlay_tokens where expires_at < now()');
  await sweepOauth(db);
}
