import { withTimeout } from '../../lib/async/signal';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { JSON_TYPE } from '../rest/rest';

export interface HealthCheck {
  /** Name in the answer, such as `database`, `timeseries`, `cache`, `broker`, `event_store`, `blobs`, `outbox`. */
  name: string;
  /** Shown only while not healthy. */
  quiet?: boolean;
  /** A throw, or no answer within 2 s, counts as unhealthy. Not called again before it has ended. */
  check(): Promise<{ status: 'healthy' | 'degraded' | 'unhealthy'; latency_ms: number }>;
}

export interface HealthOptions {
  checks: readonly HealthCheck[];
  websocket(): { sessions: number; channels: number };
  version: string;
  /** Origin of links. */
  origin(request: FastifyRequest): string;
}

interface Entry {
  name: string;
  status: 'healthy' | 'degraded' | 'unhealthy';
  latency_ms: number;
}

const CHECK_TIMEOUT_MS = 2000;
/** Time for which a round of checks answers all probes, because many load balancers probe often. */
const FRESH_MS = 1000;

/** `GET /v1/health` and the liveness probe `GET /v1`, both public and outside rate limits. Source: spec doc2 §2.16. */
export function registerHealth(app: FastifyInstance, options: HealthOptions): void {
  const started = Date.now();
  const checks = options.checks.map(oneAtATime);
  let latest: { at: number; entries: Promise<Entry[]> } | null = null;
  const entries = () => {
    if (latest === null || Date.now() - latest.at > FRESH_MS) {
      const answers = async () => (await Promise.all(checks.map(runCheck))).flatMap((entry) => entry ?? []);
      latest = { at: Date.now(), entries: answers() };
    }
    return latest.entries;
  };

  app.get('/v1', { config: { limit: 'exempt' } }, async (_request, reply) =>
    reply.header('content-type', JSON_TYPE).send('{"status":"alive"}'),
  );
  app.get('/v1/health', { config: { limit: 'exempt' } }, async (request, reply) => {
    const services = await entries();
    const status = overall(services);
    const data = {
      status,
      version: options.version,
      uptime_seconds: Math.floor((Date.now() - started) / 1000),
      services: Object.fromEntries(services.map(({ name, ...entry }) => [name, entry])),
      websocket: options.websocket(),
    };
    return reply
      .code(status === 'unhealthy' ? 503 : 200)
      .header('content-type', JSON_TYPE)
      .send(JSON.stringify({ data, _links: { self: `${options.origin(request)}/v1/health` } }));
  });
}

/** Healthy when all are up, unhealthy when all are down, degraded between. Source: spec doc2 §3, Health. */
function overall(services: readonly Entry[]): Entry['status'] {
  if (services.every((service) => service.status === 'healthy')) return 'healthy';
  return services.every((service) => service.status === 'unhealthy') ? 'unhealthy' : 'degraded';
}

/** Shares a running check among probes, so that they do not queue on a hanging engine. */
function oneAtATime({ check, ...rest }: HealthCheck): HealthCheck {
  let running: ReturnType<HealthCheck['check']> | undefined;
  return {
    ...rest,
    check: () => (running ??= check().finally(() => (running = undefined))),
  };
}

async function runCheck(check: HealthCheck): Promise<Entry | undefined> {
  const started = performance.now();
  try {
    const result = await withTimeout(check.check(), CHECK_TIMEOUT_MS, () => new Error('timeout'));
    if (check.quiet && result.status === 'healthy') return undefined;
    return { name: check.name, ...result };
  } catch {
    // The reason is in the log of the failed part; a public answer must not show it.
    return { name: check.name, status: 'unhealthy', latency_ms: Math.round(performance.now() - started) };
  }
}
