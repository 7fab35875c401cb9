/** What a span says of itself. No payload, token or personal data: a collector is another system with other readers. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanOptions {
  kind?: 'server' | 'client' | 'internal' | 'producer' | 'consumer';
  /** W3C traceparent of what caused it; absent, null or unreadable starts a trace. */
  parent?: string | null;
  /** W3C traceparents of what else led to it. */
  links?: readonly string[];
  attributes?: SpanAttributes;
}

export interface Span {
  /** W3C traceparent that makes another span this one's child; null when tracing is off. */
  readonly traceparent: string | null;
  set(attributes: SpanAttributes): void;
  /** Ends it; with an error it is marked as failed, by the error's name alone. A second call does nothing. */
  end(error?: unknown): void;
}

/** Where rooms tell what they did for whom. Nothing here waits for a collector or throws. */
export interface Tracing {
  /**
   * False: spans go nowhere. Ask it before anything is prepared for a span, so that tracing costs nothing when it is
   * off.
   */
  readonly on: boolean;
  start(name: string, options?: SpanOptions): Span;
  /** Exports what is left, for at most 2 s. */
  close(): Promise<void>;
}

const NO_SPAN: Span = Object.freeze({ traceparent: null, set: () => undefined, end: () => undefined });

/** Tracing that is off. */
export const NO_TRACING: Tracing = Object.freeze({ on: false, start: () => NO_SPAN, close: async () => undefined });

/** Trace id of a traceparent, for log lines; undefined without one. */
export const traceIdOf = (traceparent: string | null | undefined): string | undefined => traceparent?.slice(3, 35);

const MOST_LINKS = 32;

/**
 * What a span over many records belongs to: when all of them come from one trace it is that trace's, else it has a
 * trace of its own with links to theirs (the first {@link MOST_LINKS}).
 */
export function batchOrigin(traces: Iterable<string | null | undefined>): Pick<SpanOptions, 'parent' | 'links'> {
  const distinct = new Map<string, string>();
  let parent: string | null = null;
  for (const trace of traces) {
    if (!trace) continue;
    parent ??= trace;
    distinct.set(trace.slice(3, 35), trace);
    if (distinct.size === MOST_LINKS) break;
  }
  return distinct.size <= 1 ? { parent } : { parent: null, links: [...distinct.values()] };
}
