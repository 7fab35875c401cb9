import type { Engines } from '../../engines/engines';
import type { Metrics } from '../../engines/metrics/port';
import type { Settings } from '../../kernel/settings/settings';
import type { ShutdownStack } from '../../lib/async/shutdown-stack';
import { createHttpClients } from '../../vendors/http/client';
import type { HttpClients } from '../../vendors/http/port';

export interface HttpDeps {
  settings: Pick<Settings, 'outgoing'>;
  engines: Pick<Engines, 'tracing'>;
  metrics: Metrics;
  stops: ShutdownStack;
}

/** Opens HTTP clients for one part of the process. */
export function openHttp({ settings, engines, metrics, stops }: HttpDeps): HttpClients {
  const { allow_loopback } = settings.outgoing;
  const http = createHttpClients({ metrics, tracing: engines.tracing, allow_loopback });
  stops.add(() => http.close());
  return http;
}
