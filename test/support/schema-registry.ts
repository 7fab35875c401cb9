import { Type, type Schema } from 'avsc';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/**
 * A schema registry in memory, over HTTP, as its API is documented: ids are global, the same text has one id, a
 * subject's schemas are compatible backwards.
 */
export class TestSchemaRegistry {
  /** Requests seen, `METHOD path`. */
  readonly seen: string[] = [];
  readonly subjects = new Map<string, number[]>();
  readonly texts = new Map<number, string>();
  next_id = 1;
  /** Required of every request when given. */
  login: { username: string; password: string } | undefined;
  /** Answers of this status come first, so many of them. */
  failing = { status: 503, left: 0 };
  /** What the registry claims to have under every id. */
  lies: string | undefined;
  private readonly server = createServer((request, response) => void this.answer(request, response));
  private port = 0;

  static async start(): Promise<TestSchemaRegistry> {
    const registry = new TestSchemaRegistry();
    await registry.up();
    return registry;
  }

  /** With credentials as given. */
  url(login = ''): string {
    return `http://${login}127.0.0.1:${this.port}`;
  }

  async up(): Promise<void> {
    await new Promise<void>((listening) => this.server.listen(this.port, '127.0.0.1', listening));
    this.port = (this.server.address() as AddressInfo).port;
  }

  async down(): Promise<void> {
    this.server.closeAllConnections();
    if (this.server.listening) await new Promise((closed) => this.server.close(closed));
  }

  /** As somebody else registers. */
  register(subject: string, schema: string): number {
    const known = [...this.texts].find(([, one]) => one === schema)?.[0];
    const id = known ?? this.next_id++;
    this.texts.set(id, schema);
    const versions = this.subjects.get(subject) ?? [];
    if (!versions.includes(id)) versions.push(id);
    this.subjects.set(subject, versions);
    return id;
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url } = request;
    this.seen.push(`${method} ${url}`);
    const body = await text(request);
    const { status, said } = this.handle(`${method} ${new URL(url!, 'http://x').pathname}`, request, body);
    response
      .writeHead(status, { 'content-type': 'application/vnd.schemaregistry.v1+json' })
      .end(typeof said === 'string' ? said : JSON.stringify(said));
  }

  private handle(asked: string, { headers }: IncomingMessage, body: string): { status: number; said: unknown } {
    const refuse = (status: number, error_code: number, message: string) => ({ status, said: { error_code, message } });
    if (this.failing.left > 0) {
      this.failing.left -= 1;
      return { status: this.failing.status, said: '<html>' };
    }
    if (this.login) {
      const wanted = `Basic ${Buffer.from(`${this.login.username}:${this.login.password}`).toString('base64')}`;
      if (headers.authorization !== wanted) return refuse(401, 401, 'Unauthorized');
    }
    const { schema } = (body === '' ? {} : JSON.parse(body)) as { schema: string };
    const by_id = /^GET \/schemas\/ids\/(\d+)$/.exec(asked);
    if (by_id) {
      const known = this.lies ?? this.texts.get(Number(by_id[1]));
      return known ? { status: 200, said: { schema: known } } : refuse(404, 40403, 'Schema not found');
    }
    const [, kind, name, versions] =
      /^POST (\/compatibility)?\/subjects\/([^/]+)(\/versions(?:\/latest)?)?$/.exec(asked) ?? [];
    if (name === undefined) return { status: 404, said: '<html>' };
    const ids = this.subjects.get(decodeURIComponent(name));
    if (versions === undefined) {
      if (!ids) return refuse(404, 40401, `Subject '${name}' not found.`);
      const id = ids.find((one) => this.texts.get(one) === schema);
      return id === undefined
        ? refuse(404, 40403, 'Schema not found')
        : { status: 200, said: { subject: name, id, schema } };
    }
    const latest = ids?.at(-1);
    if (kind !== undefined && latest === undefined) return refuse(404, 40401, `Subject '${name}' not found.`);
    const problem = latest === undefined ? undefined : incompatible(this.texts.get(latest)!, schema);
    if (kind !== undefined)
      return { status: 200, said: { is_compatible: problem === undefined, messages: [problem ?? ''] } };
    if (problem !== undefined) return refuse(409, 409, problem);
    return { status: 200, said: { id: this.register(decodeURIComponent(name), schema) } };
  }
}

function incompatible(older: string, newer: string): string | undefined {
  try {
    const of = (schema: string) => Type.forSchema(JSON.parse(schema) as Schema);
    of(newer).createResolver(of(older));
    return undefined;
  } catch (error) {
    return `READER_FIELD_MISSING_DEFAULT_VALUE: ${(error as Error).message}`;
  }
}
