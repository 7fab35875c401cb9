import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { percentiles } from './loops';

interface Span {
  name: string;
  traceId: string;
  /** Other causes of the span: the deliveries of a batch. */
  links?: { traceId: string }[];
  startTimeUnixNano: string;
  endTimeUnixNano: string;
}
interface OtlpBody {
  resourceSpans: { scopeSpans: { spans: Span[] }[] }[];
}

/** Beginning and end, milliseconds. */
type Stretch = readonly [from: number, to: number];

/** A collector of traces over OTLP/HTTP (JSON), on a free port. */
export class Traces {
  private readonly traces = new Map<string, Map<string, Stretch>>();
  private readonly server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      this.take(JSON.parse(Buffer.concat(chunks).toString()) as OtlpBody);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });

  static async open(): Promise<Traces> {
    const traces = new Traces();
    await new Promise<void>((resolve) => traces.server.listen(0, '127.0.0.1', resolve));
    return traces;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Forgets the spans so far. */
  clear(): void {
    this.traces.clear();
  }

  /** Milliseconds of each delivery by stage, from the traces that hold the whole way. */
  stages(): { stage: string; count: number; p50_ms: number; p95_ms: number; p99_ms: number }[] {
    const taken = STAGES.map(() => [] as number[]);
    for (const spans of this.traces.values()) {
      STAGES.forEach(({ from: [first, at], to: [last, until] }, n) => {
        const [began, ended] = [spans.get(first), spans.get(last)];
        if (began && ended) taken[n]!.push(Math.max(0, ended[until] - began[at]));
      });
    }
    return STAGES.map(({ stage }, n) => ({ stage, count: taken[n]!.length, ...percentiles(taken[n]!) }));
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private take({ resourceSpans }: OtlpBody): void {
    const ms = (nanoseconds: string) => Number(BigInt(nanoseconds) / 1000n) / 1000;
    for (const span of resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))) {
      const stretch = [ms(span.startTimeUnixNano), ms(span.endTimeUnixNano)] as const;
      const own = span.links && span.links.length > 0 ? span.links : [span];
      for (const { traceId } of own) {
        const spans = this.traces.get(traceId) ?? new Map<string, Stretch>();
        this.traces.set(traceId, spans.set(span.name, stretch));
      }
    }
  }
}

const HTTP = 'HTTP POST /v1/webhooks/trovo';
const PUBLISH = 'publish platform-events';
const PROJECT = 'project event-log';
const PUSH = 'push events';
const [BEGIN, END] = [0, 1] as const;

const STAGES = [
  { stage: 'received, verified, normalised', from: [HTTP, BEGIN], to: [PUBLISH, BEGIN] },
  { stage: 'made durable in the log', from: [PUBLISH, BEGIN], to: [PUBLISH, END] },
  { stage: 'durable to projector', from: [PUBLISH, END], to: [PROJECT, BEGIN] },
  { stage: 'projected: ledger, rows, outbox, commit', from: [PROJECT, BEGIN], to: [PROJECT, END] },
  { stage: 'committed to read for the sockets', from: [PROJECT, END], to: [PUSH, BEGIN] },
  { stage: 'durable to read for the sockets', from: [PUBLISH, END], to: [PUSH, BEGIN] },
  { stage: 'waited for its flush, written to all sockets', from: [PUSH, BEGIN], to: [PUSH, END] },
] as const;
