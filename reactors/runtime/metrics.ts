import type { Counter, Gauge, Metrics } from '../../engines/metrics/port';

/** Series of reactors, all with the label `reactor`. */
export interface ReactorMetrics {
  state: Gauge;
  lag_seconds: Gauge;
  reactions: Counter;
  failures: Counter;
  parked: Counter;
  dead_letters: Gauge;
}

export function reactorMetrics(metrics: Metrics): ReactorMetrics {
  const labels = ['reactor'];
  return {
    state: metrics.gauge(
      'lumio_reactor_state',
      '1 for the state that the reactor is in on this process, 0 for the others',
      ['reactor', 'state'],
    ),
    lag_seconds: metrics.gauge('lumio_reactor_lag_seconds', 'How long the reactor has been behind', labels),
    reactions: metrics.counter('lumio_reactor_reactions_total', 'Events reacted to by this process', labels),
    failures: metrics.counter('lumio_reactor_failures_total', 'Reactions that failed and are tried again', labels),
    parked: metrics.counter('lumio_reactor_parked_total', 'Events parked as dead letters', labels),
    dead_letters: metrics.gauge('lumio_reactor_dead_letters', 'Dead letters that wait for a retry or a drop', labels),
  };
}
