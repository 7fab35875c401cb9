import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

/** One request as a vendor's fake got it. */
export interface FakeCall {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage['headers'];
  body: string;
  /** Unix milliseconds. */
  at: number;
  /** What it was answered with; 0 while it was not, or never will be. */
  status: number;
}

/** An answer that is JSON; undefined where the handler writes the response itself. */
export type FakeAnswer = { status?: number; headers?: Record<string, string>; body?: unknown } | undefined;
export type FakeHandler = (call: FakeCall, response: ServerResponse) => FakeAnswer | Promise<FakeAnswer>;

/** What goes wrong with the next calls whose path begins so. */
export interface Fault {
  path: string;
  /** Default 1. */
  times?: number;
  /** Default 500. `hang`: the connection stays open and nothing is answered. `cut`: it is closed without an answer. */
  status?: number | 'hang' | 'cut';
  /** Seconds. */
  retry_after?: number;
  body?: unknown;
}

const MAX_CALLS = 100_000;

/** A vendor's cloud on this machine: one server, what it was asked, and faults on demand. */
export class FakeCloud {
  readonly calls: FakeCall[] = [];
  /** Milliseconds that every answer takes. */
  slow_ms = 0;
  private readonly routes = new Map<string, FakeHandler>();
  private readonly faults: Required<Pick<Fault, 'path' | 'times' | 'status'>>[] & Fault[] = [];
  private readonly sockets = new Set<Duplex>();
  protected readonly server: Server;
  private address: string | undefined;

  constructor() {
    this.server = createServer((request, response) => void this.take(request, response));
    this.server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
    });
  }

  /** Listens on a free port of this machine, or on the given one. */
  async start(port = 0): Promise<this> {
    await new Promise<void>((listening, failed) => {
      this.server.once('error', failed);
      this.server.listen(port, '127.0.0.1', listening);
    });
    this.address = `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return this;
  }

  get base_url(): string {
    return `http://${this.address!}`;
  }

  get ws_base_url(): string {
    return `ws://${this.address!}`;
  }

  /** `GET /youtube/v3/videos`; a path that ends with `/*` takes all below it. */
  on(route: string, handler: FakeHandler): void {
    this.routes.set(route, handler);
  }

  fail(fault: Fault): void {
    this.faults.push({ times: 1, status: 500, ...fault });
  }

  /** Faults that have not come yet are called off. */
  heal(): void {
    this.faults.length = 0;
  }

  /** How often a path was asked for. */
  asked(path: string): number {
    return this.calls.filter((call) => call.path === path).length;
  }

  /** Calls of a path that have no answer yet. */
  protected openCalls(path: string): number {
    return this.calls.filter((call) => call.path === path && call.status === 0).length;
  }

  /** Closes every connection; new ones are taken. */
  cutAll(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cutAll();
    await new Promise((closed) => this.server.close(closed));
  }

  private async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake');
    const chunks: Buffer[] = [];
    request.on('error', () => undefined);
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = 'GET', headers } = request;
    const body = Buffer.concat(chunks).toString();
    const call: FakeCall = {
      method,
      path: url.pathname,
      query: url.searchParams,
      headers,
      body,
      at: Date.now(),
      status: 0,
    };
    this.calls.push(call);
    if (this.calls.length > MAX_CALLS) this.calls.splice(0, MAX_CALLS / 2);
    if (this.slow_ms > 0) await new Promise((resume) => setTimeout(resume, this.slow_ms));
    const fault = this.faultOf(call.path);
    if (fault?.status === 'hang') return;
    if (fault?.status === 'cut') return void response.destroy();
    const answer = fault ? faultAnswer(fault) : await this.handlerOf(call)(call, response);
    if (answer === undefined) return;
    call.status = answer.status ?? 200;
    response.writeHead(call.status, { 'content-type': 'application/json', ...answer.headers });
    response.end(answer.body === undefined ? '' : JSON.stringify(answer.body));
  }

  private faultOf(path: string): Fault | undefined {
    const at = this.faults.findIndex((one) => path.startsWith(one.path));
    const fault = this.faults[at];
    if (fault === undefined) return undefined;
    fault.times -= 1;
    if (fault.times <= 0) this.faults.splice(at, 1);
    return fault;
  }

  protected handlerOf(call: FakeCall): FakeHandler {
    const { method, path } = call;
    return (
      this.routeOf(call) ?? (() => ({ status: 404, body: { error: { code: 404, message: `no ${method} ${path}` } } }))
    );
  }

  protected routeOf({ method, path }: FakeCall): FakeHandler | undefined {
    const below = `${method} ${path.slice(0, path.lastIndexOf('/'))}/*`;
    return this.routes.get(`${method} ${path}`) ?? this.routes.get(below);
  }
}

const faultAnswer = ({ status, retry_after, body }: Fault): FakeAnswer => ({
  status: status as number,
  headers: retry_after === undefined ? {} : { 'retry-after': String(retry_after) },
  body: body ?? { error: 'on demand' },
});
