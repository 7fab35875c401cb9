import type { FastifyRequest } from 'fastify';
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import type { Caller, RequestContext, Written } from '../../access/authentication/caller';
import type { Services } from '../../app/services';
import { ApiError } from '../../kernel/errors';
import type { Database, Queryable } from '../../engines/postgres/port';
import type { Logger } from '../../engines/log/port';
import { restBody, toFailure } from '../http/answers/errors';

/** An answer that can be sent again. `body` is JSON text, null for none. */
export interface StoredAnswer {
  status: number;
  headers: Record<string, string> | null;
  body: string | null;
  /** Makes the answer again; the body is then null. */
  reference?: string;
  /** Writes that the read models had not yet applied: a repetition waits for them. */
  unsettled?: readonly Written[];
}

export interface IdempotentCall {
  request: FastifyRequest;
  /** Method and path pattern. */
  route: string;
  key: string | string[];
  caller: Caller;
  /** Replaces the caller as scope when the input itself proves the caller; null for the caller. */
  scope: string | null;
  /** Gets the `idempotency_seed` before the work runs. */
  context: RequestContext;
}

export interface Idempotency {
  /**
   * Runs `work` once in 24 hours for this caller, route and key; later calls with the same request get the first answer
   * again. Answers below 500 are kept, also refusals, but not a 429 nor an unfinished one. After those or a 5xx, or as
   * soon as the process of the first call is dead, the work runs again under the same seed, so that its appends are
   * found and not made twice.
   * @throws ApiError CONFLICT for another request under the key, or while the first still runs
   */
  answerOnce(call: IdempotentCall, work: () => Promise<StoredAnswer>): Promise<StoredAnswer>;
  stop(): void;
}

/** The advisory lock that the session of this process holds until the process ends, visible to other processes. */
export interface LockHolder {
  readonly lock: number;
  readonly held: boolean;
}

export interface IdempotencyOptions {
  db: Database;
  log: Logger;
  holder: LockHolder;
  awaitShown: Services['awaitShown'];
}

/** Longest time for which a request holds its key when its process has no session lock. */
const LOCK_SECONDS = 60;
const RELEASE_AGAIN_MS = 500;
/**
 * Most characters of a stored body. A repetition makes a longer one again: it runs under the same seed and so finds
 * the appends of the first call. A command that only broadcasts answers less: its event has 48 KiB at most. An emitted
 * event is kept as a reference.
 */
const LONGEST_KEPT = 64 * 1024;
const KEPT = `interval '24 hours'`;
const KEY = /^[\x20-\x7e]{1,255}$/;

interface Claim {
  seed: Buffer;
  /** Creation of the seed, Unix milliseconds; Infinity when this claim created it. */
  since: number;
  mine: boolean;
  request_hash: Buffer;
  answer: Buffer | null;
}

/** Deletes expired answers. Returns their number. */
export async function sweepIdempotencyKeys(db: Queryable): Promise<number> {
  const query = `delete from idempotency_keys where created_at < now() - ${KEPT} returning 1 as one`;
  return (await db.query(query)).length;
}

/** Answers are kept in `idempotency_keys`, shared by all nodes of one database. Design §5. */
export function createIdempotency({ db, log, holder, awaitShown }: IdempotencyOptions): Idempotency {
  let stopped = false;
  /**
   * Keys of running requests of this process. A key that its session holds without a running request is left from a
   * claim whose result was lost.
   */
  const working = new Map<string, object>();

  /**
   * Frees the key at once after a failure of the server; the seed stays, so that a retry finds earlier appends.
   */
  async function release(id: Buffer, seed: Buffer): Promise<void> {
    await db.query(
      'update idempotency_keys set locked_until = now(), holder = null where id = $1 and seed = $2 and answer is null',
      [id, seed],
    );
  }

  /** Frees a key whose claim may or may not be stored, unless a later request of this process runs under it. */
  async function releaseUnanswered(id: Buffer): Promise<void> {
    if (working.has(id.toString('hex'))) return;
    await db.query(
      `update idempotency_keys set locked_until = now(), holder = null where id = $1 and holder = $2
         and answer is null`,
      [id, holder.lock],
    );
  }

  /**
   * Retries the release until it succeeds or the process stops, because the cause of the work's failure may prevent the
   * release as well.
   */
  function releaseLater(attempt: () => Promise<void>, error: unknown): void {
    log.warn({ error }, 'an idempotency key could not be released, trying again');
    const again = () =>
      void attempt().catch((failure: unknown) => {
        if (!stopped) return void setTimeout(again, RELEASE_AGAIN_MS).unref();
        log.warn({ error: failure }, 'an idempotency key is released by the end of this process');
      });
    setTimeout(again, RELEASE_AGAIN_MS).unref();
  }

  async function claim(id: Buffer, request_hash: Buffer, own: object, user_id: string | null): Promise<Claim> {
    const name = id.toString('hex');
    const others_work = working.has(name);
    if (!others_work) working.set(name, own);
    try {
      const claimed = await takeClaim(db, id, request_hash, holder.held ? holder.lock : null, others_work, user_id);
      if (claimed.mine) working.set(name, own);
      return claimed;
    } catch (error) {
      releaseLater(() => releaseUnanswered(id), error);
      throw error;
    }
  }

  /** Runs the work of a request that holds its key, and stores the answer. */
  async function answerFirst(
    call: IdempotentCall,
    work: () => Promise<StoredAnswer>,
    id: Buffer,
    { seed, since }: Pick<Claim, 'seed' | 'since'>,
    key: Buffer,
  ) {
    call.context.seed_since = since;
    call.context.idempotency_seed = createHash('sha256').update(id).update(seed).digest('hex');
    let answer: StoredAnswer;
    let reference: string | undefined;
    try {
      answer = await work();
      reference = call.context.answer_reference;
    } catch (error) {
      const failure = toFailure(error);
      if (failure.status >= 500 || failure.status === 429) {
        await release(id, seed).catch((failed: unknown) => releaseLater(() => release(id, seed), failed));
        throw error;
      }
      const headers =
        failure.retry_after_seconds === undefined ? null : { 'retry-after': String(failure.retry_after_seconds) };
      answer = { status: failure.status, headers, body: JSON.stringify(restBody(failure)) };
    }
    if (call.context.not_shown) answer = { ...answer, unsettled: call.context.not_shown };
    const kept = reference === undefined ? answer : { ...answer, body: null, reference };
    try {
      if (call.context.unfinished || (kept.body !== null && kept.body.length > LONGEST_KEPT)) {
        await release(id, seed);
        return answer;
      }
      const sealed = seal(JSON.stringify(kept), key, id);
      await db.query('update idempotency_keys set answer = $3 where id = $1 and seed = $2', [id, seed, sealed]);
    } catch (error) {
      releaseLater(() => release(id, seed), error);
      throw error;
    }
    return answer;
  }

  /** Repeats the first answer after the read models have applied its writes. */
  async function replay(
    { context }: IdempotentCall,
    { unsettled = [], reference, ...first }: StoredAnswer,
    work: () => Promise<StoredAnswer>,
  ): Promise<StoredAnswer> {
    for (const written of unsettled) {
      // Answers stored by an older release have another form; they are repeated without a wait.
      if ('topic' in written || 'types' in written) await awaitShown(context, written);
    }
    if (reference !== undefined) {
      context.repeats = reference;
      first.body = (await work()).body;
    }
    const { 'x-lumio-read-model': _then, ...headers } = first.headers ?? {};
    return { ...first, headers: { ...headers, ...context.response_headers, 'idempotency-replayed': 'true' } };
  }

  return {
    async answerOnce(call, work) {
      if (typeof call.key !== 'string' || !KEY.test(call.key)) {
        throw new ApiError('VALIDATION_ERROR', 'Idempotency-Key: must be 1 to 255 printable ASCII characters');
      }
      const id = hash(call.scope ?? callerScope(call.caller), call.route, call.key);
      const secret = Buffer.from(hkdfSync('sha256', call.key, id, 'lumio idempotency', 64));
      const fingerprint = createHmac('sha256', secret.subarray(32)).update(requestText(call.request)).digest();
      const own = {};
      try {
        const claimed = await claim(id, fingerprint, own, call.caller.user_id);
        if (claimed.mine) return await answerFirst(call, work, id, claimed, secret.subarray(0, 32));
        if (!claimed.request_hash.equals(fingerprint)) {
          throw new ApiError('CONFLICT', 'This Idempotency-Key was already used for another request');
        }
        if (claimed.answer === null) {
          throw new ApiError('CONFLICT', 'A request with this Idempotency-Key is still in progress', {
            retry_after_seconds: 1,
          });
        }
        const first = JSON.parse(open(claimed.answer, secret.subarray(0, 32), id)) as StoredAnswer;
        return await replay(call, first, work);
      } finally {
        if (working.get(id.toString('hex')) === own) working.delete(id.toString('hex'));
      }
    },
    stop() {
      stopped = true;
    },
  };
}

/**
 * Claims the key in one statement. The row is taken over when it has expired (with a new seed, as a new request), or
 * when its holder is gone (with the old seed, as the same request). A holder is gone when the advisory lock of its
 * process is free, or when that process is this one and no request runs under the key; a holder without a session lock
 * keeps the key for {@link LOCK_SECONDS}.
 */
async function takeClaim(
  db: Database,
  id: Buffer,
  request_hash: Buffer,
  holder: number | null,
  others_work: boolean,
  user_id: string | null,
): Promise<Claim> {
  const fresh = randomBytes(16);
  const taken = await db.query<{ seed: Buffer; since: number }>(
    `insert into idempotency_keys as k (id, request_hash, seed, locked_until, holder, user_id)
     values ($1, $2, $3, now() + $4 * interval '1 second', $5, $7)
     on conflict (id) do update set
       seed = case when k.created_at < now() - ${KEPT} then excluded.seed else k.seed end,
       created_at = case when k.created_at < now() - ${KEPT} then now() else k.created_at end,
       answer = null, request_hash = excluded.request_hash, locked_until = excluded.locked_until, holder = excluded.holder
     where case when k.created_at < now() - ${KEPT} then true
                when k.answer is not null or k.request_hash <> excluded.request_hash then false
                when k.holder is null then k.locked_until < now()
                when k.holder = excluded.holder then not $6
                else pg_try_advisory_xact_lock_shared(k.holder) end
     returning seed, (extract(epoch from created_at) * 1000)::float8 as since`,
    [id, request_hash, fresh, LOCK_SECONDS, holder, others_work, user_id],
  );
  if (taken[0]) {
    const { seed, since } = taken[0];
    return { seed, since: seed.equals(fresh) ? Infinity : since, mine: true, request_hash, answer: null };
  }
  const [held] = await db.query<Pick<Claim, 'seed' | 'request_hash' | 'answer'>>(
    'select seed, request_hash, answer from idempotency_keys where id = $1',
    [id],
  );
  // A row released between the two statements counts as still running; the caller may retry.
  return { ...(held ?? { seed: id, request_hash, answer: null }), since: -Infinity, mine: false };
}

function callerScope(caller: Caller): string {
  const who = caller.kind === 'jwt' && !caller.client ? caller.user_id : caller.credential_id;
  return `${caller.kind} ${who ?? caller.rate_bucket} ${caller.account_id ?? ''}`;
}

/** Text of a request that must be equal for a replay. The URL includes the path parameters. */
function requestText(request: FastifyRequest): string {
  return `${request.method} ${request.url}\n${request.body === undefined ? '' : JSON.stringify(request.body)}`;
}

function hash(...parts: string[]): Buffer {
  return createHash('sha256').update(parts.join('\0')).digest();
}

function seal(plain: string, key: Buffer, aad: Buffer): Buffer {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(aad);
  return Buffer.concat([nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

function open(sealed: Buffer, key: Buffer, aad: Buffer): string {
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12)).setAAD(aad);
  decipher.setAuthTag(sealed.subarray(-16));
  return decipher.update(sealed.subarray(12, -16), undefined, 'utf8') + decipher.final('utf8');
}
