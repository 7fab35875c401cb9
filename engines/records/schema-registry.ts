import { Type, type Schema } from 'avsc';
import { retry } from '../../lib/async/retry';
import type { Logger } from '../log/port';
import type { SchemaIds } from './schema-ids';

/** Schema of the values that are written to a topic. */
export interface WrittenSchema {
  topic: string;
  /** Our id. */
  schema_id: number;
}

export interface SchemaRegistryOptions {
  /** `https://user:password@host:8081/path`. */
  url: string;
  /** All our schemas, by our id. */
  schemas: ReadonlyMap<number, Schema>;
  written: readonly WrittenSchema[];
  log: Logger;
  /** Milliseconds for which requests to a silent registry are retried. Default 30 000. */
  wait_ms?: number;
}

const REQUEST_MS = 5_000;
const JSON_TYPE = 'application/vnd.schemaregistry.v1+json';
/** Error codes of the registry: unknown subject, or no such schema under it. */
const NO_SUBJECT = 40401;
const NO_SCHEMA = 40403;

interface Answer {
  status: number;
  /** Undefined when the body is not a JSON object. */
  body: Record<string, unknown> | undefined;
}

/**
 * Ids of a Confluent-compatible schema registry. Finds each schema by its text under the subject `<topic>-value`
 * (TopicNameStrategy), registers missing ones, and compares the registry's schema of the id with ours. Ids are kept in
 * memory only, so that a registry may become unavailable later; the next start finds them by the texts again. Design
 * §6.
 */
export function createSchemaRegistry(options: SchemaRegistryOptions): SchemaIds {
  return new SchemaRegistry(options);
}

class SchemaRegistry implements SchemaIds {
  readonly foreign = true;
  private readonly base: string;
  private readonly authorization: string | undefined;
  /** Host and path for messages, without credentials. */
  private readonly shown: string;
  private readonly wire = new Map<string, number>();
  private readonly by_wire = new Map<number, number>();
  private learning: Promise<void> | undefined;

  constructor(private readonly options: SchemaRegistryOptions) {
    const url = new URL(options.url);
    const { username, password } = url;
    if (username !== '') {
      const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
      this.authorization = `Basic ${Buffer.from(login).toString('base64')}`;
    }
    [url.username, url.password, url.search, url.hash] = ['', '', '', ''];
    this.base = url.href.replace(/\/+$/, '');
    this.shown = this.base.replace(/^https?:\/\//, '');
  }

  ready(): Promise<void> {
    this.learning ??= this.learn().catch((error: unknown) => {
      this.learning = undefined;
      throw error;
    });
    return this.learning;
  }

  onWire(topic: string, schema_id: number): number {
    const id = this.wire.get(keyOf(topic, schema_id));
    if (id === undefined)
      throw new Error(`the schema registry was not asked for the id of schema ${schema_id} in ${topic}`);
    return id;
  }

  ours(wire_id: number): number | undefined {
    // A value without a header was most likely written before a registry was configured.
    return this.options.schemas.has(wire_id) ? wire_id : this.by_wire.get(wire_id);
  }

  private async learn(): Promise<void> {
    const { written, log, wait_ms = 30_000 } = this.options;
    const give_up_at = Date.now() + wait_ms;
    const ids: Record<string, number> = {};
    for (const { topic, schema_id } of written) {
      const subject = `${topic}-value`;
      const schema = this.options.schemas.get(schema_id)!;
      const text = JSON.stringify(schema);
      const id = (await this.find(subject, text, give_up_at)) ?? (await this.register(subject, text, give_up_at));
      if (this.by_wire.get(id) !== schema_id) await this.verify(subject, id, schema, give_up_at);
      this.wire.set(keyOf(topic, schema_id), id);
      this.by_wire.set(id, schema_id);
      ids[subject] = id;
    }
    log.info({ registry: this.shown, ids }, 'the schema registry knows the schemas of the topics');
  }

  private async find(subject: string, schema: string, give_up_at: number): Promise<number | undefined> {
    const { status, body } = await this.ask('POST', `/subjects/${encodeURIComponent(subject)}`, { schema }, give_up_at);
    if (status === 200) return this.idIn(body);
    const code = body?.['error_code'];
    if (status === 404 && (code === NO_SUBJECT || code === NO_SCHEMA)) return undefined;
    throw this.refusal(subject, status, body);
  }

  private async register(subject: string, schema: string, give_up_at: number): Promise<number> {
    const path = `/subjects/${encodeURIComponent(subject)}`;
    const check = `/compatibility${path}/versions/latest?verbose=true`;
    const { status, body } = await this.ask('POST', check, { schema }, give_up_at);
    // Other answers are ignored: a subject without versions has no compatibility to check.
    if (status === 200 && body?.['is_compatible'] === false) throw this.refusal(subject, 409, body);
    const registered = await this.ask('POST', `${path}/versions`, { schema }, give_up_at);
    if (registered.status !== 200) throw this.refusal(subject, registered.status, registered.body);
    return this.idIn(registered.body);
  }

  /** @throws Error when the registry has another schema under the id */
  private async verify(subject: string, id: number, schema: Schema, give_up_at: number): Promise<void> {
    const { status, body } = await this.ask('GET', `/schemas/ids/${id}`, undefined, give_up_at);
    if (status !== 200) throw this.refusal(subject, status, body);
    if (!sameSchema(body?.['schema'], schema))
      throw new Error(
        `the schema registry at ${this.shown} gave ${subject} the id ${id}, and has another schema under it`,
      );
  }

  /** Sends a request; retries failures, 5xx and 429 until `give_up_at`. @throws Error that ends the start */
  private async ask(method: string, path: string, content: object | undefined, give_up_at: number): Promise<Answer> {
    const { log } = this.options;
    const send = async () => {
      const answer = await this.send(method, path, content);
      if (answer.status >= 500 || answer.status === 429) throw new Error(`it answers ${answer.status}`);
      return answer;
    };
    try {
      return await retry(send, {
        first_ms: 200,
        most_ms: 2_000,
        within_ms: give_up_at - Date.now(),
        passing: () => true,
        onFailure: (error) => {
          const facts = { registry: this.shown, problem: problemOf(error) };
          log.warn(facts, 'the schema registry does not answer, trying again');
        },
      });
    } catch (error) {
      throw new Error(`the schema registry at ${this.shown} cannot be used: ${problemOf(error)}`);
    }
  }

  private async send(method: string, path: string, content: object | undefined): Promise<Answer> {
    const response = await fetch(this.base + path, {
      method,
      redirect: 'error',
      signal: AbortSignal.timeout(REQUEST_MS),
      headers: {
        accept: `${JSON_TYPE}, application/json`,
        ...(content && { 'content-type': JSON_TYPE }),
        ...(this.authorization && { authorization: this.authorization }),
      },
      ...(content && { body: JSON.stringify(content) }),
    });
    return { status: response.status, body: objectIn(await response.text()) };
  }

  private idIn(body: Answer['body']): number {
    const id = body?.['id'];
    if (!Number.isSafeInteger(id) || (id as number) < 0 || (id as number) > 0x7fff_ffff)
      throw new Error(`the schema registry at ${this.shown} answers without a schema id`);
    return id as number;
  }

  private refusal(subject: string, status: number, body: Answer['body']): Error {
    const said = [body?.['message'], body?.['messages']]
      .flat()
      .filter((text) => typeof text === 'string' && text !== '');
    const why = said.length > 0 ? `: ${said.join(' ').replace(/\s+/g, ' ').slice(0, 500)}` : '';
    const at = `the schema registry at ${this.shown}`;
    if (status === 401 || status === 403) return new Error(`${at} refuses the login (${status})${why}`);
    if (status === 409)
      return new Error(
        `${at} holds a schema under ${subject} that ours is not compatible with; another program writes that topic, or the subject is from elsewhere${why}`,
      );
    if (body?.['error_code'] === undefined)
      return new Error(`${at} does not speak the registry's protocol (${status} for ${subject})`);
    return new Error(`${at} refuses the schema of ${subject} (${status})${why}`);
  }
}

/** Code or message of the cause, which describe a failed request better than its own message. */
function problemOf(error: unknown): string {
  const { message, cause } = error as Error;
  const below = cause as { code?: string; message?: string } | undefined;
  return below?.code ?? below?.message ?? message;
}

const keyOf = (topic: string, schema_id: number): string => `${schema_id} ${topic}`;

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : undefined;
  } catch {
    // For example an error page of a proxy: the caller decides by the status.
    return undefined;
  }
}

/** Whether both schemas have equal fields, types and order, regardless of formatting. */
function sameSchema(text: unknown, schema: Schema): boolean {
  if (typeof text !== 'string') return false;
  try {
    return Type.forSchema(JSON.parse(text) as Schema)
      .fingerprint()
      .equals(Type.forSchema(schema).fingerprint());
  } catch {
    return false;
  }
}
