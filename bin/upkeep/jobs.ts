import { clearStaleFlags } from '../../services/connections/connection-flags';
import type { ChatCalls, JobTools } from '../../app/job';
import { renewKickSubscriptions, type VendorConnections } from '../../services/connections/vendor-connections';
import { createPayloadSealing } from '../../engines/jobs/sealing';
import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import { type JobDeclaration, periodic } from '../../kernel/job';
import type { Role, Settings } from '../../kernel/settings/settings';
import type { ShutdownStack } from '../../lib/async/shutdown-stack';
import { createArchiveReader } from '../../maintenance/archive/reader';
import { eraseWithoutKeys } from '../../privacy/erasure/erasure';
import { eraseUser } from '../../privacy/erasure/erase-person';
import { reapplyErasures } from '../../privacy/erasure/noted-erasures';
import { indexAll } from '../../maintenance/archive/subject-index';
import { createPersonalTexts } from '../../privacy/subject-keys/texts';
import { startDueAutomations } from '../../services/automation/automations/automation-schedules';
import { featureEnds } from '../../services/automation/runs/feature-ends';
import { scheduleStarts } from '../../services/automation/runs/schedule-starts';
import { startDue } from '../../services/automation/schedules';
import { createWebhookCalls, disableFailing } from '../../services/automation/automations/webhooks';
import { actingForJob } from '../../reactors/runtime/acting';
import { createJobs, type Jobs } from '../../reactors/runtime/jobs';
import { archiving } from './archiving';
import { JOBS } from '../areas';
import type { Engines } from '../../engines/engines';
import { erasingOn, RECORD_ERASERS } from './erasers';
import { notedErasuresOn } from './noted-erasures';
import { liveOf } from '../services';
import { botsOf } from '../../services/history/session-figures';
import { crawlerJobs } from './crawler';
import { lakeJobs } from './lake';
import { registerSlashCommands } from '../../services/discord/slash-commands';
import { openDiscord } from '../vendors/discord';
import { openHttp } from '../vendors/http';
import { recurring, upkeep } from './upkeep';

const HOUR_MS = 3_600_000;
/** Interval at which due schedules of accounts are started. */
const DUE_MS = 2_000;
/** Interval at which changed commands are registered at Discord. */
const SLASH_MS = 10_000;

/** All jobs, and those that this process runs: a worker runs the areas' jobs and upkeep, a projector the archiver. */
export function openJobs(
  deps: { settings: Settings; engines: Engines; log: Logger; metrics: Metrics; stops: ShutdownStack },
  connections: VendorConnections,
  chats: ChatCalls,
) {
  const { settings, engines, log, metrics } = deps;
  const has = (role: Role) => settings.roles.includes(role);
  const { jobs: queue, projector_db: db, events, subject_keys, tracing } = engines;
  const sessions = { grace_ms: settings.history.session_grace, bots: botsOf(settings.history) };
  const own: JobDeclaration[] = has('worker')
    ? upkeep({
        ...{ db, secrets: engines.secrets, events, subject_keys, jobs: queue, blobs: engines.blobs, log, ...sessions },
        ...{ live: liveOf(engines, metrics), sessions_ms: settings.history.count_every },
      })
    : [];
  if (has('worker')) {
    const index = { ...engines, db, readArchived: createArchiveReader(engines) };
    const topics = RECORD_ERASERS.map(({ topic }) => topic);
    own.push(recurring(HOUR_MS, 'subject-index', () => indexAll(index, topics), log));
    own.push(recurring(HOUR_MS, 'noted-erasures', () => reapplyErasures({ ...notedErasuresOn(engines), db }), log));
    own.push(...crawlerJobs(settings, engines, openHttp(deps), log));
    own.push(...lakeJobs(settings, engines, log, deps.stops));
    const renew = (signal: AbortSignal) => renewKickSubscriptions({ ...connections, db }, log, signal);
    own.push(recurring(6 * HOUR_MS, 'kick-subscriptions', renew, log));
    const start = async () => {
      const started = await startDue(db, (tx, requests) => jobs.enqueueNamed(tx, requests));
      if (started > 0) jobs.wake();
      return started;
    };
    own.push(periodic({ name: 'due-schedules', every_ms: DUE_MS, timeout_ms: 60_000, run: start }));
    const startScheduled = async () => {
      const now_ms = Date.now();
      const started = await startDueAutomations(
        db,
        (tx, due) => jobs.enqueueNamed(tx, scheduleStarts(due, now_ms)),
        now_ms,
      );
      if (started > 0) jobs.wake();
      return started;
    };
    own.push(periodic({ name: 'due-automations', every_ms: DUE_MS, timeout_ms: 60_000, run: startScheduled }));
    const endFeatureless = async () => {
      const requests = await featureEnds(db);
      if (requests.length === 0) return 0;
      await db.transaction((tx) => jobs.enqueueNamed(tx, requests));
      jobs.wake();
      return requests.length;
    };
    own.push(periodic({ name: 'automation-features', every_ms: DUE_MS, timeout_ms: 60_000, run: endFeatureless }));
    own.push(recurring(HOUR_MS / 4, 'webhook-failures', () => disableFailing({ db, events }), log));
    if (settings.discord.bot_token !== '') {
      const discord = openDiscord(deps);
      const onFailed = (err: unknown, guild_id: string) =>
        log.info({ err, guild_id }, 'slash commands of a Discord server were not registered');
      const run = (signal: AbortSignal) => registerSlashCommands({ db, discord, onFailed }, signal);
      own.push(periodic({ name: 'discord-slash-commands', every_ms: SLASH_MS, timeout_ms: 60_000, run }));
    }
    own.push(recurring(HOUR_MS / 4, 'reconnect-flags', () => clearStaleFlags({ db, events }), log));
  }
  if (has('projector') && settings.archive.enabled) own.push(archiving(settings, engines, log, metrics));
  const declared = [...JOBS, ...(own as JobDeclaration<JobTools>[])];
  const names = [...(has('worker') ? JOBS : []), ...own].map(({ name }) => name);
  const erasing = erasingOn(engines);
  const http = openHttp(deps);
  const services: Omit<JobTools, 'act'> = {
    db: engines.db,
    records: engines.records,
    live: liveOf(engines, metrics),
    blobs: engines.blobs,
    http,
    webhooks: createWebhookCalls({ db: engines.db, secrets: engines.secrets, http }),
    log,
    connections,
    chats,
    texts: createPersonalTexts(subject_keys),
    hashes: subject_keys,
    erase: async (user_id) => void (await eraseUser(erasing, user_id)),
    eraseRows: async (hash) => {
      await eraseWithoutKeys(
        { ...erasing, db, erasers: RECORD_ERASERS, readArchived: createArchiveReader(engines) },
        hash,
      );
      engines.wakeups.notify('messages-erased');
    },
  };
  const jobs: Jobs<JobTools> = createJobs<JobTools>({
    queue,
    db,
    declared,
    sealing: createPayloadSealing(declared as JobDeclaration[], subject_keys),
    services: services as JobTools,
    servicesOf: (job) => ({ act: actingForJob(job, events, Date.now()) }),
    log,
    metrics,
    tracing,
  });
  return { jobs, start: () => (names.length === 0 ? undefined : jobs.start(names)) };
}

export type OpenJobs = ReturnType<typeof openJobs>;
