import { createAccessChanges } from '../access/changes';
import { createCounts } from '../access/counts';
import { createFeatureFlags } from '../access/features';
import { createMemberPermissions } from '../access/memberships';
import { createCallerResolver } from '../access/resolve';
import { createRevocationTail } from '../access/revocations';
import { createTokens } from '../access/tokens';
import type { Settings } from '../kernel/settings';
import type { Logger } from '../engines/log/port';
import type { PrometheusMetrics } from '../engines/metrics/prometheus';
import type { Database } from '../engines/postgres/port';
import type { Engines } from '../engines/engines';
import { openLogins } from './logins';
import type { Stops } from '../kernel/stops';

export interface CallersDeps {
  settings: Settings;
  engines: Engines;
  db: Database;
  log: Logger;
  metrics: PrometheusMetrics;
  stops: Stops;
}

export type Callers = Awaited<ReturnType<typeof openCallers>>;

/** Who is calling, what they may, and how every node forgets what no longer holds. */
export async function openCallers({ settings, engines, db, log, metrics, stops }: CallersDeps) {
  const tokens = await createTokens({ db, secrets: engines.secrets });
  const features = createFeatureFlags({ db });
  const counts = createCounts({ limits: engines.rate_limits, log, metrics });
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
