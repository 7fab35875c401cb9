import type { Counter, Gauge, Histogram, Metrics } from '../../../engines/metrics/port';

/** Series of the projection runtime, all with the label `projection`. */
export interface RunnerMetrics {
  lag_records: Gauge;
  lag_seconds: Gauge;
  state: Gauge;
  batch_records: Histogram;
  records: Counter;
  apply_seconds: Histogram;
  dead_letters: Gauge;
  parked: Counter;
  restarts: Counter;
}

export function runnerMetrics(metrics: Metrics): RunnerMetrics {
  const labels = ['projection'];
  return {
    lag_records: metrics.gauge(
      'lumio_projection_lag_records',
      'Records not yet applied (domain events: 1 when behind)',
      labels,
    ),
    lag_seconds: metrics.gauge('lumio_projection_lag_seconds', 'Age of the newest applied record while behind', labels),
    state: metrics.gauge(
      'lumio_projection_state',
      '1 for the state that the projection is in on this process, 0 for the others',
      ['projection', 'state'],
    ),
    batch_records: metrics.histogram(
      'lumio_projection_batch_records',
      'Records applied by one transaction',
      [1, 3, 10, 30, 100, 300, 1000, 3000],
      labels,
    ),
    records: metrics.counter('lumio_projection_records_total', 'Records applied', labels),
    apply_seconds: metrics.histogram(
      'lumio_projection_apply_seconds',
      'Duration of one batch, from its fence to its commit',
      [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10],
      labels,
    ),
    dead_letters: metrics.gauge(
      'lumio_projection_dead_letters',
      'Dead letters that wait for a retry or a drop',
      labels,
    ),
    parked: metrics.counter('lumio_projection_parked_total', 'Records parked as dead letters', labels),
    restarts: metrics.counter('lumio_projection_restarts_total', 'Consumer restarts by cause', [
      'projection',
      'reason',
    ]),
  };
}
