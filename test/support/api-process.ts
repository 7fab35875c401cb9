import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { testDatabase, type TestDatabase } from './database';
import { doorAt, type Door } from './door';

export interface ApiProcess extends Door {
  pid: number;
  stop(): Promise<void>;
  kill(): Promise<void>;
}

/** Everything the sample operations ask for, on one caller. */
export const OWNER = 'jwt|notes:read+notes:create+notes:edit+notes:delete';

/**
 * The sample API as a process of its own, over real HTTP; `node` are flags of Node. One that stands still does so as it
 * stops, until it is told to go on.
 */
export async function startSampleApi(
  databaseUrl: string,
  settings: object = {},
  { node = [], stands_still = false }: { node?: readonly string[]; stands_still?: boolean } = {},
): Promise<ApiProcess> {
  const script = join(__dirname, '../../dist/test/support/api-sample.js');
  const child = spawn(
    process.execPath,
    [...node, script, databaseUrl, JSON.stringify(settings), stands_still ? 'still' : ''],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  const url = line.trim();

  return {
    ...doorAt(url, OWNER),
    pid: child.pid!,
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

/** One sample API over a database of its own for all tests of a file. */
export function sampleApiOfFile(use: (api: ApiProcess, database: TestDatabase) => void, connections = 2): void {
  let database: TestDatabase;
  let api: ApiProcess | undefined;
  beforeAll(async () => {
    database = await testDatabase(connections);
    api = await startSampleApi(database.url);
    use(api, database);
  });
  afterAll(async () => {
    await api?.stop();
    await database.drop();
  });
}
