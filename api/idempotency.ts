import type { FastifyRequest } from 'fastify';
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import type { Caller, RequestContext } from '../access/caller';
import { ApiError } from '../domain/errors';
import type { Database } from '../engines/postgres/port';
import type { Logger } from '../engines/log/port';
import { restBody, toFailure } from './errors';

/** An answer that can be sent again. `body` is JSON text, null for none. */
export interface StoredAnswer {
  status: number;
  headers: Record<string, string> | null;
  body: string | null;
}

export interface IdempotentCall {
  request: FastifyRequest;
  /** Method and path pattern. */
  route: string;
  key: string | string[];
  caller: Caller;
  /** Its `idempotency_seed` is set before the work runs. */
  context: RequestContext;
}

export interface Idempotency {
  /**
   * Runs `work` once in 24 hours for this caller, route and key; later calls with the same request get the first answer again.
   * Answers below 500 are kept, also refusals; after a 5xx or a crash the work runs again under the same seed, so that what it had
   * appended is found and not made twice. @throws ApiError CONFLICT for another request under the key, or while the first still runs
   */
  once(call: IdempotentCall, work: () => Promise<StoredAnswer>): Promise<StoredAnswer>;
  stop(): void;
}

/** Longest time one request may hold its key before another may take it over, for a process that died. */
const LOCK_SECONDS = 60;
const KEPT = `interval '24 hours'`;
const SWEEP_MS = 15 * 60_000;
const KEY = /^[\x20-\x7e]{1,255}$/;

interface Claim {
  seed: Buffer;
  mine: boolean;
  request_hash: Buffer;
  answer: Buffer | null;
}

/** Answers are kept in `idempotency_keys`, shared by all nodes of one database. Design §5. */
export function createIdempotency(db: Database, log: Logger): Idempotency {
  const sweep = setInterval(() => {
    db.query(`delete from idempotency_keys where created_at < now() - ${KEPT}`).catch((error: unknown) =>
      log.warn({ error }, 'expired idempotency keys could not be removed'),
    );
  }, SWEEP_MS);
  sweep.unref();

  return {
    async once(call, work) {
      if (typeof call.key !== 'string' || !KEY.test(call.key)) {
        throw new ApiError('VALIDATION_ERROR', 'Idempotency-Key: must be 1 to 255 printable ASCII characters');
      }
      const id = hash(callerScope(call.caller), call.route, call.key);
      const secret = Buffer.from(hkdfSync('sha256', call.key, id, 'lumio idempotency', 64));
      const fingerprint = createHmac('sha256', secret.subarray(32)).update(requestText(call.request)).digest();
      const claim = await take(db, id, fingerprint);
      if (!claim.mine) {
        if (!claim.request_hash.equals(fingerprint)) {
          throw new ApiError('CONFLICT', 'This Idempotency-Key was already used for another request');
        }
        if (claim.answer === null) {
          throw new ApiError('CONFLICT', 'A request with this Idempotency-Key is still in progress', {
            retry_after_seconds: 1,
          });
        }
        const first = JSON.parse(open(claim.answer, secret.subarray(0, 32), id)) as StoredAnswer;
        return { ...first, headers: { ...first.headers, 'idempotency-replayed': 'true' } };
      }
      call.context.idempotency_seed = createHash('sha256').update(id).update(claim.seed).digest('hex');
      let answer: StoredAnswer;
      try {
        answer = await work();
      } catch (error) {
        const failure = toFailure(error);
        if (failure.status >= 500 || failure.status === 429) {
          await release(db, id, claim.seed);
          throw error;
        }
        const headers =
          failure.retry_after_seconds === undefined ? null : { 'retry-after': String(failure.retry_after_seconds) };
        answer = { status: failure.status, headers, body: JSON.stringify(restBody(failure)) };
      }
      await db.query('update idempotency_keys set answer = $3 where id = $1 and seed = $2', [
        id,
        claim.seed,
        seal(JSON.stringify(answer), secret.subarray(0, 32), id),
      ]);
      return answer;
    },
    stop: () => clearInterval(sweep),
  };
}

/**
 * One statement decides who works. The row is taken over when it has expired (with a new seed: it is a new request), or when its
 * holder has been silent beyond the lock (with the old seed: it is the same request).
 */
async function take(db: Database, id: Buffer, request_hash: Buffer): Promise<Claim> {
  const taken = await db.query<{ seed: Buffer }>(
    `insert into idempotency_keys as k (id, request_hash, seed, locked_until)
     values ($1, $2, $3, now() + $4 * interval '1 second')
     on conflict (id) do update set
       seed = case when k.created_at < now() - ${KEPT} then excluded.seed else k.seed end,
       created_at = case when k.created_at < now() - ${KEPT} then now() else k.created_at end,
       answer = null, request_hash = excluded.request_hash, locked_until = excluded.locked_until
     where k.created_at < now() - ${KEPT}
        or (k.answer is null and k.locked_until < now() and k.request_hash = excluded.request_hash)
     returning seed`,
    [id, request_hash, randomBytes(16), LOCK_SECONDS],
  );
  if (taken[0]) return { seed: taken[0].seed, mine: true, request_hash, answer: null };
  const [held] = await db.query<Omit<Claim, 'mine'>>(
    'select seed, request_hash, answer from idempotency_keys where id = $1',
    [id],
  );
  // Released between the two statements: as good as still running, and the caller may try again.
  return held ? { ...held, mine: false } : { seed: id, mine: false, request_hash, answer: null };
}

/** After a failure of ours the key is free again at once; the seed stays, so that a retry finds what was already appended. */
async function release(db: Database, id: Buffer, seed: Buffer): Promise<void> {
  await db.query('update idempotency_keys set locked_until = now() where id = $1 and seed = $2', [id, seed]);
}

function callerScope(caller: Caller): string {
  const who = caller.kind === 'jwt' ? caller.user_id : caller.credential_id;
  return `${caller.kind} ${who ?? caller.rate_bucket} ${caller.account_id ?? ''}`;
}

/** What must be the same for an answer to be replayed. The URL carries the path parameters. */
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
