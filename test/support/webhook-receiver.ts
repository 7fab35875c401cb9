import { createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A server of somebody who takes webhooks. */
export class WebhookReceiver {
  readonly received: Received[] = [];
  /** Answer to each webhook; `cut` ends the connection without one. */
  status: number | 'cut' = 200;
  private readonly server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    this.received.push({ path: request.url!, headers: request.headers, body: Buffer.concat(chunks).toString() });
    if (this.status === 'cut') request.socket.destroy();
    else response.writeHead(this.status, { location: `${this.url}/elsewhere` }).end();
  });

  async start(): Promise<this> {
    await new Promise<void>((listening) => this.server.listen(0, '127.0.0.1', listening));
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/hook`;
  }

  /** Signature of Standard Webhooks by one secret. */
  signatureOf({ headers, body }: Received, secret: string): string {
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`;
    return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }
}
