import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A person at a vendor, and the app that their token was given to. */
export interface FakePerson {
  id: string;
  name: string;
  email?: string;
  avatar_url?: string;
  client_id: string;
  scopes?: readonly string[];
}

export interface Answer {
  status: number;
  body: unknown;
}

export interface Asked {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage['headers'];
  body: string;
  /** Behind `Bearer` or `OAuth`, whichever the vendor takes; empty where it is the other one. */
  token(scheme: 'Bearer' | 'OAuth'): string;
}

/** What it does instead of answering. */
export type Fault = { status: number; headers?: Record<string, string> } | 'hang';

/** A vendor's own HTTP interface on this machine, with people, their tokens, and faults on demand. */
export class FakeVendor {
  /** By access token; one that is taken away is revoked. */
  readonly people = new Map<string, FakePerson>();
  readonly asked: Asked[] = [];
  fault: Fault | null = null;
  private readonly server: Server;

  constructor(answer: (asked: Asked, people: ReadonlyMap<string, FakePerson>) => Answer) {
    this.server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        const { pathname, searchParams } = new URL(request.url!, 'http://vendor');
        const token = (scheme: string) =>
          new RegExp(`^${scheme} (.+)$`).exec(request.headers.authorization ?? '')?.[1] ?? '';
        const { method, headers } = request;
        const asked: Asked = { method: method!, path: pathname, query: searchParams, headers, body, token };
        this.asked.push(asked);
        if (this.fault === 'hang') return;
        if (this.fault !== null) return response.writeHead(this.fault.status, this.fault.headers).end('{}');
        const { status, body: said } = answer(asked, this.people);
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(said));
      });
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((listening) => this.server.listen(0, '127.0.0.1', listening));
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }
}
