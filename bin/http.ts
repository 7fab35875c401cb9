import type { Engines } from '../engines/engines';
import type { Metrics } from '../engines/metrics/port';
import type { Settings } from '../kernel/settings';
import type { Stops } from '../kernel/stops';
import { createHttpClients } from '../vendors/http/client';
import type { HttpClients } from '../vendors/http/port';

export interface HttpDeps {
  settings: Pick<Settings, 'outgoing'>;
  engines: Pick<Engines, 'tracing'>;
  metrics: Metrics;
  stops: Stops;
}

/** Calls to the outside for one part of the process. */
export function openHttp({ settings, engines, metrics, stops }: HttpDeps): HttpClients {
  const { allow_loopback } = settings.outgoing;
  const http = createHttpClients({ metrics, tracing: engines.tracing, allow_loopback });
  stops.add(() => http.close());
  return http;
}
