import type { IncomingMessage } from 'node:http';
import type { Caller } from '../../../access/authentication/caller';
import { contextOf } from '../../../access/authentication/contexts';
import type { RateLimiter } from '../../../access/limits/rate-limiter';
import { failureBucket, upgradeBucket } from '../../../access/limits/rate-buckets';
import type { CallerResolver } from '../../../access/authentication/resolve';
import type { Slots } from '../../../engines/slots/port';
import { ApiError } from '../../../kernel/errors';
import { plainAddress } from '../../../lib/net/addresses';
import type { OriginPolicy } from '../../../lib/net/origins';
import { LIMITS } from '../channel/limits';
import { inTime } from '../delivery/outbox';
import type { SocketFailures } from '../session/socket-failures';
import { refuseEarly, requestUrl, type Refusal } from './upgrade';

export interface AdmissionDeps {
  /** Decides which pages may open sockets. */
  origins: OriginPolicy;
  /** Resolves the caller; a request without a credential is the anonymous caller. */
  resolve: CallerResolver['resolve'];
  /** The client's address behind trusted proxies; default: the socket's own. */
  client_ip?: ((req: IncomingMessage) => string) | undefined;
  /** The host that the client addressed, behind trusted proxies; default: the request's `Host`. */
  request_host?: ((req: IncomingMessage) => string | undefined) | undefined;
  /** Counts upgrades, those that are refused too. */
  counts: Pick<RateLimiter, 'wait'>;
  /** Counts the sockets of each caller. */
  slots: Pick<Slots, 'take' | 'giveBack'>;
  failed: SocketFailures;
}

const RESOLVE_FAILED: Refusal = {
  status: 503,
  error: 'INTERNAL_SERVER_ERROR',
  message: 'Service unavailable',
  retry_after_seconds: 1,
};
const tooMany = (retry_after_seconds: number): Refusal => ({
  status: 429,
  error: 'RATE_LIMIT_EXCEEDED',
  message: 'Rate limit exceeded',
  retry_after_seconds,
});
const FAILURE_TEXTS = { TOKEN_EXPIRED: 'The token has expired', UNAUTHORIZED: 'Authentication required' } as const;

/** Everything before the 101: who may come in, and what the others are told. */
export class UpgradeAdmission {
  /** Nobody is let in any more: the node is stopping. */
  closed = false;

  constructor(private readonly deps: AdmissionDeps) {}

  /** The caller when it may come in, until it has {@link release}. Never rejects: what fails here is a 503. */
  async admit(req: IncomingMessage): Promise<Refusal | Caller> {
    if (this.closed) return { ...RESOLVE_FAILED, message: 'The node is stopping' };
    try {
      return await this.check(req);
    } catch (error) {
      if (error instanceof ApiError && error.retry_after_seconds !== undefined) {
        const { status, code, message, retry_after_seconds } = error;
        return { status, error: code, message, retry_after_seconds };
      }
      this.deps.failed({ err: error }, 'an upgrade could not be checked');
      return RESOLVE_FAILED;
    }
  }

  /** A refusal costs the network a unit, of a bucket that holds nothing else. */
  private async check(req: IncomingMessage): Promise<Refusal | Caller> {
    const url = requestUrl(req);
    const ip = this.deps.client_ip?.(req) ?? plainAddress(req.socket.remoteAddress ?? '');
    const host = this.deps.request_host?.(req) ?? req.headers.host;
    const early = refuseEarly(req, url, this.deps.origins, host);
    if (early) return this.counted(early, ip);
    const account = req.headers['x-lumio-account'];
    const resolving = this.deps.resolve({
      authorization: req.headers.authorization,
      query_token: url!.searchParams.get('token') ?? undefined,
      on_upgrade: true,
      account_header: typeof account === 'string' ? account : undefined,
      ip,
      now: Date.now(),
    });
    const resolved = resolving instanceof Promise ? await inTime(resolving) : resolving;
    if (resolved.failure !== null) {
      return this.counted({ status: 401, error: resolved.failure, message: FAILURE_TEXTS[resolved.failure] }, ip);
    }
    const { caller } = resolved;
    const wait = await this.deps.counts.wait(upgradeBucket(caller));
    if (wait !== null) return tooMany(wait);
    const { sockets } = contextOf(caller.kind);
    const free = sockets === null || (await this.deps.slots.take(caller.rate_bucket, sockets));
    return free ? caller : tooMany(LIMITS.retry_after_seconds);
  }

  /** Releases an admission, with or without a session. */
  release({ kind, rate_bucket }: Caller): void {
    if (contextOf(kind).sockets !== null) this.deps.slots.giveBack(rate_bucket);
  }

  private async counted(refusal: Refusal, ip: string): Promise<Refusal> {
    const wait = await this.deps.counts.wait(failureBucket(ip));
    return wait === null ? refusal : tooMany(wait);
  }
}
