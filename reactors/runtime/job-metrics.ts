import { JOB_STATES, type JobQueue } from '../../engines/jobs/port';
import type { Metrics } from '../../engines/metrics/port';

const SECONDS = [0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300];

export interface JobMetrics {
  seconds: ReturnType<Metrics['histogram']>;
  released: ReturnType<Metrics['counter']>;
  show(names: readonly string[], counts: readonly Awaited<ReturnType<JobQueue['counts']>>[number][]): void;
}

export function jobMetrics(metrics: Metrics): JobMetrics {
  const jobs = metrics.gauge('lumio_jobs', 'Jobs by state', ['name', 'state']);
  const late = metrics.gauge('lumio_jobs_ready_seconds', 'How long the first job that could run has waited', ['name']);
  return {
    seconds: metrics.histogram('lumio_jobs_run_seconds', 'Duration of one try of a job', SECONDS, ['name', 'outcome']),
    released: metrics.counter('lumio_jobs_released_total', 'Jobs released because their process died'),
    show(names, counts) {
      for (const name of new Set([...names, ...counts.map((one) => one.name)])) {
        const own = counts.filter((one) => one.name === name);
        for (const state of JOB_STATES) {
          jobs.set(own.find((one) => one.state === state)?.count ?? 0, { name, state });
        }
        late.set(own.find(({ state }) => state === 'ready')?.oldest_seconds ?? 0, { name });
      }
    },
  };
}
