import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../../../engines/log/port';
import type { Metrics } from '../../../engines/metrics/port';
import { hasFailed, logFacts } from './request-state';

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const LABELS = ['method', 'route', 'status'] as const;

/** Records the end of a request: its metrics, its span and its log line. */
export function createRequestEnds({ log, metrics }: { log: Logger; metrics: Metrics }) {
  const requests = metrics.counter('http_requests_total', 'HTTP requests', LABELS);
  const durations = metrics.histogram(
    'http_request_duration_seconds',
    'Time from the request line to the end of the answer',
    BUCKETS,
    LABELS,
  );
  return (request: FastifyRequest, reply: FastifyReply): void => {
    const { method, span } = request;
    const { statusCode } = reply;
    // Read once, because Fastify makes an object of all route options on each access.
    const { url: route = 'unmatched', config } = request.routeOptions;
    const labels = { method, route, status: String(statusCode) };
    const seconds = reply.elapsedTime / 1000;
    requests.inc(1, labels);
    durations.observe(seconds, labels);
    if (span) {
      span.set({ 'http.response.status_code': statusCode, 'lumio.correlation_id': request.correlation_id });
      span.end(statusCode >= 500 ? `status ${statusCode}` : undefined);
    }
    if (config.routine && statusCode < 400) return;
    const facts = { ...labels, ms: Math.round(seconds * 1e4) / 10, ...logFacts(request) };
    // The failure log has a line of it, or counts it.
    if (statusCode === 503 || hasFailed(request)) log.debug(facts, 'request failed');
    else if (statusCode >= 500) log.warn(facts, 'request failed');
    else if (statusCode >= 400 || method !== 'GET') log.info(facts, 'request');
    else log.debug(facts, 'request');
  };
}
