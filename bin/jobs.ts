import { clearStaleFlags } from '../access/connection-flags';
import type { JobTools } from '../access/job';
import { renewKickSubscriptions, type VendorConnections } from '../access/vendor-connections';
import { createPayloadSealing } from '../engines/jobs/sealing';
import type { Logger } from '../engines/log/port';
import type { Metrics } from '../engines/metrics/port';
import type { JobDeclaration } from '../kernel/job';
import type { Role, Settings } from '../kernel/settings';
import { createJobs, type Jobs } from '../reactors/runtime/jobs';
import { archiving } from './archiving';
import { JOBS } from './areas';
import type { Engines } from '../engines/engines';
import { eraseUser } from './erasers';
import { indexing } from './indexing';
import { recurring, upkeep } from './upkeep';
import { createHttpClients } from '../vendors/http/client';

const QUARTER_HOUR_MS = 15 * 60_000;
const SIX_HOURS_MS = 6 * 3_600_000;

/**
 * The jobs of this process, and those of them that its roles run: the areas' and upkeep where it is a worker, the
 * archiver where it is a projector.
 */
export function openJobs(
  { settings, engines, log, metrics }: { settings: Settings; engines: Engines; log: Logger; metrics: Metrics },
  connections: VendorConnections,
) {
  const has = (role: Role) => settings.roles.includes(role);
  const { jobs: queue, projector_db: db, events, subject_keys, tracing } = engines;
  const own: JobDeclaration[] = has('worker')
    ? upkeep({ db, events, subject_keys, jobs: queue, blobs: engines.blobs, log })
    : [];
  if (has('worker')) own.push(indexing(engines, log));
  if (has('worker')) {
    const renew = (signal: AbortSignal) => renewKickSubscriptions(connections, log, signal);
    own.push(recurring(SIX_HOURS_MS, 'kick-subscriptions', renew, log));
    own.push(recurring(QUARTER_HOUR_MS, 'reconnect-flags', () => clearStaleFlags({ db, events }), log));
  }
  if (has('projector') && settings.archive.enabled) own.push(archiving(settings, engines, log, metrics));
  const declared = [...JOBS, ...(own as JobDeclaration<JobTools>[])];
  const names = [...(has('worker') ? JOBS : []), ...own].map(({ name }) => name);
  const http = createHttpClients({ metrics, tracing, allow_loopback: settings.outgoing.allow_loopback });
  const jobs: Jobs<JobTools> = createJobs<JobTools>({
    queue,
    db,
    declared,
    sealing: createPayloadSealing(declared as JobDeclaration[], subject_keys),
    services: { db: engines.db, http, log, connections, erase: (user_id) => eraseUser(engines, user_id) },
    log,
    metrics,
    tracing,
  });
  return {
    jobs,
    start: () => (names.length === 0 ? undefined : jobs.start(names)),
    close: () => http.close(),
  };
}

export type OpenJobs = ReturnType<typeof openJobs>;
