import { createAccessChanges } from '../access/authentication/access-invalidation';
import { createRateLimiter } from '../access/limits/rate-limiter';
import { createFeatureFlags } from '../access/authorization/features';
import { createMemberPermissions } from '../access/authorization/memberships';
import { createCallerResolver } from '../access/authentication/resolve';
import { createRevocationTail } from '../access/authentication/revocations';
import { createTokens } from '../access/authentication/tokens/jwt';
import type { Settings } from '../kernel/settings/settings';
import type { Logger } from '../engines/log/port';
import type { PrometheusMetrics } from '../engines/metrics/prometheus';
import type { Database } from '../engines/postgres/port';
import type { Engines } from '../engines/engines';
import { openLogins } from './vendors/logins';
import type { ShutdownStack } from '../lib/async/shutdown-stack';

export interface CallersDeps {
  settings: Settings;
  engines: Engines;
  db: Database;
  log: Logger;
  metrics: PrometheusMetrics;
  stops: ShutdownStack;
}

export type Callers = Awaited<ReturnType<typeof openCallers>>;

/** Opens the resolution of callers and their rights, and the invalidation of caches on every node. */
export async function openCallers({ settings, engines, db, log, metrics, stops }: CallersDeps) {
  const tokens = await createTokens({ db, secrets: engines.secrets });
  const features = createFeatureFlags({ db });
  const counts = createRateLimiter({ limits: engines.rate_limits, log, metrics });
  const resolver = createCallerResolver({ db, tokens, log, counts, system_keys: settings.auth.system_keys });
  stops.add(() => resolver.close());
  const tail = createRevocationTail({ db, log });
  stops.add(() => tail.stop());
  const members = createMemberPermissions({ db });
  const forget = [resolver.forget, features.forget, members.forget];
  const access = createAccessChanges({ relay: engines.relay, tail, forget });
  stops.add(() => access.close());
  const logins = openLogins({ settings, engines, metrics, stops });
  return { tokens, logins, features, counts, resolver, tail, members, access };
}
