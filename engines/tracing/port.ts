/** Attributes of a span. No payload, token or personal data: a collector is another system with other readers. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanOptions {
  kind?: 'server' | 'client' | 'internal' | 'producer' | 'consumer';
  /** W3C traceparent of the cause; absent, null or unreadable starts a trace. */
  parent?: string | null;
  /** W3C traceparents of further causes. */
  links?: readonly string[];
  attributes?: SpanAttributes;
}

export interface Span {
  /** W3C traceparent that makes another span this one's child; null when tracing is off. */
  readonly traceparent: string | null;
  set(attributes: SpanAttributes): void;
  /** Ends the span; an error marks it as failed, by the error's name alone. A second call does nothing. */
  end(error?: unknown): void;
}

/** Records spans of operations. Never waits for a collector, never throws. */
export interface Tracing {
  /**
   * False when spans are dropped. Check before preparing a span, so that disabled tracing costs nothing.
   */
  readonly on: boolean;
  start(name: string, options?: SpanOptions): Span;
  /** Exports the remaining spans, for at most 2 s. */
  close(): Promise<void>;
}

const NO_SPAN: Span = Object.freeze({ traceparent: null, set: () => undefined, end: () => undefined });

/** Disabled tracing. */
export const NO_TRACING: Tracing = Object.freeze({ on: false, start: () => NO_SPAN, close: async () => undefined });

/** Trace id of a traceparent, for log lines; undefined without one. */
export const traceIdOf = (traceparent: string | null | undefined): string | undefined => traceparent?.slice(3, 35);

const MAX_LINKS = 32;

/**
 * Parent or links of a span over many records: the parent when all records are of one trace; otherwise links to their
 * traces (the first {@link MAX_LINKS}) for a trace of its own.
 */
export function batchOrigin(traces: Iterable<string | null | undefined>): Pick<SpanOptions, 'parent' | 'links'> {
  const distinct = new Map<string, string>();
  let parent: string | null = null;
  for (const trace of traces) {
    if (!trace) continue;
    parent ??= trace;
    distinct.set(trace.slice(3, 35), trace);
    if (distinct.size === MAX_LINKS) break;
  }
  return distinct.size <= 1 ? { parent } : { parent: null, links: [...distinct.values()] };
}
