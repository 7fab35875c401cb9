import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PATIENCE_MS } from './patience';

export interface CollectedSpan {
  name: string;
  trace_id: string;
  span_id: string;
  parent_id: string | null;
  /** 2 is the server's, 4 a producer's, 5 a consumer's. */
  kind: number;
  failed: boolean;
  attributes: Record<string, unknown>;
  /** Trace ids that it links to. */
  links: string[];
  service: string;
}

interface OtlpAttribute {
  key: string;
  value: { stringValue?: string; intValue?: number | string; boolValue?: boolean; doubleValue?: number };
}
interface OtlpSpan {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  kind: number;
  status?: { code?: number };
  attributes?: OtlpAttribute[];
  links?: { traceId: string }[];
}
interface OtlpBody {
  resourceSpans: { resource: { attributes: OtlpAttribute[] }; scopeSpans: { spans: OtlpSpan[] }[] }[];
}

export interface Collector {
  url: string;
  spans: CollectedSpan[];
  /** Resolves with the first answer that is not undefined, asked again at each export. */
  until<T>(what: string, ask: (spans: readonly CollectedSpan[]) => T | undefined): Promise<T>;
  close(): Promise<void>;
}

/** A collector of traces over OTLP/HTTP (JSON), on a free port of this machine. */
export async function startCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  const waiting = new Set<() => void>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (request.method !== 'POST' || request.url !== '/v1/traces') {
        response.writeHead(404).end();
        return;
      }
      take(spans, JSON.parse(Buffer.concat(chunks).toString()) as OtlpBody);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      for (const look of [...waiting]) look();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    until: (what, ask) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const answer = ask(spans);
          if (answer === undefined) return;
          clearTimeout(timer);
          waiting.delete(look);
          resolve(answer);
        };
        const timer = setTimeout(() => {
          waiting.delete(look);
          const names = spans.map((span) => `${span.trace_id} ${span.name}`);
          reject(new Error(`no ${what} in time; collected:\n${names.join('\n')}`));
        }, PATIENCE_MS);
        waiting.add(look);
        look();
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function take(spans: CollectedSpan[], body: OtlpBody): void {
  for (const { resource, scopeSpans } of body.resourceSpans) {
    const service = String(valuesOf(resource.attributes)['service.name']);
    for (const span of scopeSpans.flatMap((scope) => scope.spans)) {
      spans.push({
        name: span.name,
        trace_id: span.traceId,
        span_id: span.spanId,
        parent_id: span.parentSpanId || null,
        kind: span.kind,
        failed: span.status?.code === 2,
        attributes: valuesOf(span.attributes ?? []),
        links: (span.links ?? []).map(({ traceId }) => traceId),
        service,
      });
    }
  }
}

function valuesOf(attributes: readonly OtlpAttribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
