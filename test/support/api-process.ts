import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export interface ApiProcess {
  url: string;
  pid: number;
  stop(): Promise<void>;
  kill(): Promise<void>;
  rest(
    method: string,
    path: string,
    options?: { as?: string; body?: unknown; headers?: Record<string, string> },
  ): Promise<Answer>;
  gql(query: string, options?: { as?: string; variables?: unknown; headers?: Record<string, string> }): Promise<Answer>;
}
export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** Each test expects a shape of its own. */
  json: any;
}

/** Everything the sample operations ask for, on one caller. */
export const OWNER = 'jwt|notes:read+notes:create+notes:edit+notes:delete';

/** The sample API as a process of its own, over real HTTP; `node` are flags of Node. */
export async function startSampleApi(
  databaseUrl: string,
  settings: object = {},
  node: readonly string[] = [],
): Promise<ApiProcess> {
  const script = join(__dirname, '../../dist/test/support/api-sample.js');
  const child = spawn(process.execPath, [...node, script, databaseUrl, JSON.stringify(settings)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  const url = line.trim();

  async function send(
    method: string,
    path: string,
    headers: Record<string, string>,
    body: string | undefined,
  ): Promise<Answer> {
    const response = await fetch(url + path, { method, headers, body, redirect: 'manual' });
    const text = await response.text();
    const json =
      response.headers.get('content-type')?.startsWith('application/json') && text !== ''
        ? JSON.parse(text)
        : undefined;
    return { status: response.status, headers: response.headers, text, json };
  }
  const credential = (as: string | undefined): Record<string, string> =>
    as === '' ? {} : { authorization: `Bearer ${as ?? OWNER}` };
  return {
    url,
    pid: child.pid!,
    rest(method, path, { as, body, headers } = {}) {
      const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
      const type: Record<string, string> = text === undefined ? {} : { 'content-type': 'application/json' };
      return send(method, path, { ...type, ...credential(as), ...headers }, text);
    },
    gql: (query, { as, variables, headers } = {}) =>
      send(
        'POST',
        '/v1/gql',
        { 'content-type': 'application/json', ...credential(as), ...headers },
        JSON.stringify({ query, variables }),
      ),
    async kill() {
      child.kill('SIGKILL');
      if (child.signalCode === null) await once(child, 'exit');
    },
    async stop() {
      child.stdin.end();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}
