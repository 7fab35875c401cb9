import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { v7 } from 'uuid';
import { generateKey } from '../access/authentication/keys';
import { ROOT } from './harness';
import { type BenchPostgres, treeCpu } from './postgres';

/** A program under test, on the system's core. */
export interface Program {
  base_url: string;
  pid: number;
  /** CPU microseconds that it has used so far. */
  cpu(): number;
  /** Ends it and waits. */
  stop(): Promise<void>;
}

export interface Credentials {
  account_id: string;
  user_id: string;
  access_token: string;
  user_api_key: string;
  system_key: string;
  connections: Record<'trovo' | 'kick', { platform_channel_id: string }>;
  webhook_signing: { trovo_secret: string };
}

export interface Lumio extends Program {
  url: string;
  data_dir: string;
  env: Record<string, string>;
  credentials: Credentials;
}

/** Creates a database on the benchmark's PostgreSQL. */
export async function database(postgres: BenchPostgres, name: string): Promise<string> {
  const admin = new pg.Client({ connectionString: postgres.url });
  await admin.connect();
  await admin.query(`create database ${name}`);
  await admin.end();
  return postgres.url.replace('/lumio?', `/${name}?`);
}

/** The real server with all roles, as `npm start` runs it, with its database on the benchmark's PostgreSQL. */
export async function startLumio(
  postgres: BenchPostgres,
  name = 'lumio_bench',
  more: Readonly<Record<string, string>> = {},
): Promise<Lumio> {
  const url = await database(postgres, name);
  const data_dir = mkdtempSync(join(tmpdir(), 'lumio-bench-data-'));
  const env = {
    LUMIO_DATABASE__URL: url,
    LUMIO_DATA_DIR: data_dir,
    LUMIO_PORT: '0',
    LUMIO_METRICS__PORT: '0',
    LUMIO_SECRETS__KEYS: `bench:${randomBytes(32).toString('base64')}`,
    ...more,
  };
  const program = await startProgram(join(ROOT, 'dist/bin/main.js'), ['start'], env);
  const credentials = JSON.parse(readFileSync(join(data_dir, 'dev-credentials.json'), 'utf8')) as Credentials;
  return {
    ...program,
    url,
    data_dir,
    env,
    credentials,
    async stop() {
      await program.stop();
      rmSync(data_dir, { recursive: true, force: true });
    },
  };
}

/** Starts a peer's server of bench/peers on a free port. */
export const startPeer = (name: string, args: readonly string[], env: Record<string, string> = {}): Promise<Program> =>
  startProgram(join(ROOT, `dist/bench/peers/${name}.js`), args, env);

/** Starts a program on the system's core; its output goes to a file, so that no reader is needed meanwhile. */
export function spawnOnSystemCore(
  script: string,
  args: readonly string[],
  env: Record<string, string>,
  output: string,
) {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('LUMIO_')));
  const command = cpus().length > 1 ? ['taskset', '-c', '0', process.execPath] : [process.execPath];
  const file = openSync(output, 'w');
  const child = spawn(command[0]!, [...command.slice(1), script, ...args], {
    env: { ...inherited, NODE_ENV: 'production', ...env },
    stdio: ['ignore', file, file],
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  return child;
}

async function startProgram(script: string, args: readonly string[], env: Record<string, string>): Promise<Program> {
  const folder = mkdtempSync(join(tmpdir(), 'lumio-bench-out-'));
  const output = join(folder, 'output');
  const child = spawnOnSystemCore(script, args, env, output);
  const base_url = await readyUrl(child, output);
  return {
    base_url,
    pid: child.pid!,
    cpu: () => treeCpu(child.pid!),
    async stop() {
      await ended(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((done) => child.once('exit', done));
  child.kill('SIGTERM');
  await exited;
}

async function readyUrl(child: ChildProcess, output: string): Promise<string> {
  for (let waited = 0; waited < 60_000; waited += 20) {
    const text = readFileSync(output, 'utf8');
    const url = / ready at (http:\S+)/.exec(text)?.[1];
    if (url) return url;
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`the program ended:\n${text}`);
    await sleep(20);
  }
  child.kill('SIGKILL');
  throw new Error(`not ready within 60 s:\n${readFileSync(output, 'utf8')}`);
}

export interface Person {
  user_id: string;
  keys: string[];
}

/**
 * Creates people with five personal keys each, as members of the demo account: each key may make 1,200 requests a
 * minute.
 */
export async function people({ url, credentials }: Lumio, count: number): Promise<Person[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const made: Person[] = [];
  for (let n = 0; n < count; n += 1) {
    const user_id = v7();
    const keys = Array.from({ length: 5 }, () => generateKey('user_api_key'));
    await client.query(
      `insert into account_members select account_id, $1, $2, role_id, joined_at from account_members where user_id = $3`,
      [user_id, v7(), credentials.user_id],
    );
    await client.query(`insert into users (id, created_at) select $1, created_at from users where id = $2`, [
      user_id,
      credentials.user_id,
    ]);
    for (const { hash, prefix } of keys) {
      await client.query(
        `insert into api_keys select $1, account_id, $2, $3, $4, 'Stream deck', permissions, created_at, null
         from api_keys where user_id = $5 limit 1`,
        [v7(), user_id, hash, prefix, credentials.user_id],
      );
    }
    made.push({ user_id, keys: keys.map(({ key }) => key) });
  }
  await client.end();
  return made;
}

/**
 * Creates keys for `count` clients, five per person, in one statement each; they have the permissions of the demo's
 * owner.
 */
export async function keys({ url, credentials }: Lumio, count: number): Promise<string[]> {
  const made = Array.from({ length: count }, () => generateKey('user_api_key'));
  const users = Array.from({ length: Math.ceil(count / 5) }, () => v7());
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const owner = credentials.user_id;
  await client.query(
    `insert into users (id, created_at) select given, created_at from users, unnest($1::uuid[]) given where id = $2`,
    [users, owner],
  );
  await client.query(
    `insert into account_members select account_id, given, gen_random_uuid(), role_id, joined_at
     from account_members, unnest($1::uuid[]) given where user_id = $2 and account_id = $3`,
    [users, owner, credentials.account_id],
  );
  await client.query(
    `insert into api_keys select gen_random_uuid(), account_id, given.user_id, hash, prefix, 'Overlay', permissions,
       created_at, null
     from (select * from api_keys where user_id = $1 limit 1) one,
       unnest($2::uuid[], $3::text[], $4::text[]) as given (user_id, hash, prefix)`,
    [
      owner,
      made.map((_key, n) => users[Math.floor(n / 5)]),
      made.map(({ hash }) => hash),
      made.map(({ prefix }) => prefix),
    ],
  );
  await client.end();
  return made.map(({ key }) => key);
}
