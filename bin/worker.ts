import { setTimeout as pause } from 'node:timers/promises';
import type { Leases } from '../engines/leases/port';
import type { Logger } from '../engines/log/port';
import type { Metrics } from '../engines/metrics/port';
import type { Database } from '../engines/postgres/port';
import type { SubjectKeys } from '../engines/subject-keys/port';
import { createDeadLetters } from '../ingest/runtime/parked';
import { ensureEventLogPartitions } from '../projections/event-log';
import { ensureLedgerPartitions, trimBodies } from '../projections/runtime/ledger';
import { ensureStreamSamplePartitions } from '../projections/stream-samples';

/** A piece of upkeep that one process of all does, at its start and then regularly. It must bear being done twice. */
export interface Chore {
  name: string;
  every_ms: number;
  /** Returns how many things it changed. */
  run(): Promise<number>;
}

export interface WorkerDeps {
  leases: Leases;
  chores: readonly Chore[];
  log: Logger;
  metrics: Metrics;
  /** Pause after a failure. Default one minute. */
  retry_ms?: number;
}

const DAY_MS = 86_400_000;
/** Bodies of parked deliveries hold personal data: they go after this long, settled or not. */
const DEAD_LETTERS_KEPT_MS = 30 * DAY_MS;

/** The sweeps of the role `worker`. */
export const sweeps = (db: Database, subject_keys: Pick<SubjectKeys, 'expire'>): Chore[] => [
  { name: 'event-log-partitions', every_ms: DAY_MS, run: () => ensureEventLogPartitions(db) },
  { name: 'stream-sample-partitions', every_ms: DAY_MS, run: () => ensureStreamSamplePartitions(db) },
  {
    name: 'ingest-dead-letters',
    every_ms: 3_600_000,
    run: () => createDeadLetters({ db }).trim(DEAD_LETTERS_KEPT_MS),
  },
  { name: 'subject-keys', every_ms: 3_600_000, run: () => subject_keys.expire() },
  { name: 'ledger-partitions', every_ms: DAY_MS, run: () => ensureLedgerPartitions(db) },
  { name: 'ledger-bodies', every_ms: 3_600_000, run: () => trimBodies(db) },
];

/**
 * The role `worker`: does each chore while this process holds its lease; another takes over when it ends or dies.
 * Design §9.
 */
export function createWorker(deps: WorkerDeps): { stop(): Promise<void> } {
  const { leases, log, retry_ms = 60_000 } = deps;
  const held = deps.metrics.gauge('lumio_worker_leases', '1 while this process holds the lease of a chore', ['chore']);
  const runs = deps.metrics.counter('lumio_worker_runs_total', 'Chores done, by outcome', ['chore', 'outcome']);
  const campaigns = deps.chores.map((chore) =>
    leases.campaign(`chore:${chore.name}`, async ({ signal }) => {
      const label = { chore: chore.name };
      held.set(1, label);
      try {
        while (!signal.aborted) {
          let next = chore.every_ms;
          try {
            const changed = await chore.run();
            runs.inc(1, { ...label, outcome: 'done' });
            if (changed > 0) log.info({ ...label, changed }, 'a chore is done');
          } catch (error) {
            next = Math.min(next, retry_ms);
            runs.inc(1, { ...label, outcome: 'failed' });
            log.warn({ err: error, ...label }, 'a chore failed; it is tried again');
          }
          await pause(next, undefined, { signal, ref: false }).catch(() => undefined);
        }
      } finally {
        held.set(0, label);
      }
    }),
  );
  return {
    async stop() {
      await Promise.all(campaigns.map((campaign) => campaign.stop()));
    },
  };
}
