import {
  type Attributes,
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base';
import type { Span, SpanOptions, Tracing } from './port';

export interface OpenTelemetryOptions {
  /** OTLP/HTTP endpoint: a collector's origin, to which `/v1/traces` is added, or the full address. */
  otlp_url: string;
  service: string;
  version: string;
  /**
   * Share of kept traces that begin here, 0 to 1; the flags of a trace that a caller began decide for that trace.
   */
  sample_ratio: number;
}

const KINDS = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const;
const EXPORT_EVERY_MS = 1000;
const CLOSE_WITHIN_MS = 2000;
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/;

/**
 * Spans by the OpenTelemetry SDK, exported in batches over OTLP/HTTP (JSON). Registers nothing globally and instruments
 * nothing by itself. Drops spans beyond 2,048 waiting ones, so that the server never waits for a slow collector.
 */
export function createOpenTelemetryTracing(options: OpenTelemetryOptions): Tracing {
  const url = new URL(options.otlp_url);
  if (url.pathname === '/') url.pathname = '/v1/traces';
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': options.service, 'service.version': options.version }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(options.sample_ratio) }),
    spanProcessors: [
      new BatchSpanProcessor(new OTLPTraceExporter({ url: url.href }), {
        scheduledDelayMillis: EXPORT_EVERY_MS,
        maxQueueSize: 2048,
      }),
    ],
  });
  const tracer = provider.getTracer(options.service, options.version);
  return {
    on: true,
    start(name: string, { kind = 'internal', parent, links = [], attributes }: SpanOptions = {}): Span {
      const linked = links.map(contextOf).filter((context) => context !== undefined);
      const span = tracer.startSpan(
        name,
        { kind: KINDS[kind], attributes: attributes as Attributes, links: linked.map((context) => ({ context })) },
        under(parent),
      );
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
        set: (more) => void span.setAttributes(more as Attributes),
        end(error) {
          if (error !== undefined) {
            const type = error instanceof Error ? error.name : 'error';
            span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR, message: type });
          }
          if (span.isRecording()) span.end();
        },
      };
    },
    async close() {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSE_WITHIN_MS)));
      // An unavailable collector must not make a stop fail: only its spans are lost.
      await Promise.race([provider.shutdown().catch(() => undefined), late]);
      clearTimeout(timer);
    },
  };
}

function under(parent: string | null | undefined): Context {
  const context = parent ? contextOf(parent) : undefined;
  return context ? trace.setSpanContext(ROOT_CONTEXT, context) : ROOT_CONTEXT;
}

function contextOf(traceparent: string): SpanContext | undefined {
  const match = TRACEPARENT.exec(traceparent);
  if (!match) return undefined;
  const context = { traceId: match[1]!, spanId: match[2]!, traceFlags: parseInt(match[3]!, 16) & 1, isRemote: true };
  return isSpanContextValid(context) ? context : undefined;
}
