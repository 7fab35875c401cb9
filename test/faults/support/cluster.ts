import { chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../engines/postgres/embedded/server';
import { ownerFor } from '../../../engines/postgres/embedded/run-as';
import { ORDINARY_ROLE, ordinaryUrl } from '../../support/database';
import { silentLog } from '../../support/log';
import { assertDisposable, disown, own } from './disposable';
import { signalTree } from './signals';

/**
 * A PostgreSQL server that may be broken in every way: on a loopback address of its own, so that links can lead to it
 * by TCP.
 */
export interface Cluster {
  readonly host: string;
  readonly pid: number;
  /** Makes an empty database with "test" in its name; returns its connection string, straight to the server. */
  createDatabase(): Promise<string>;
  /** One statement, past every link. */
  query(url: string, sql: string, values?: unknown[]): Promise<any[]>;
  /** SIGKILL to the server and its backends, which lead sessions of their own. */
  kill(): Promise<void>;
  /** Fast shutdown. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Ends every other connection to the database, as an operator's script would. */
  terminate(url: string): Promise<number>;
  /** Stops it and removes its files. */
  dispose(): Promise<void>;
}

export interface ClusterOptions {
  /** `name=value` beyond the embedded server's. */
  settings?: readonly string[];
  /** Beside this process's own. */
  env?: Record<string, string>;
  /** Where its files go; default: below the folder for temporary files. */
  folder?: string;
}

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'lumio-faults-'));
  mkdirSync(folder, { recursive: true });
  const owner = ownerFor();
  if (owner) chownSync(folder, owner.uid, owner.gid);
  const [a, b] = randomBytes(2);
  const host = `127.77.${a}.${1 + (b! % 254)}`;
  const settings = [`listen_addresses=${host}`, ...(options.settings ?? [])];
  let server: EmbeddedPostgres;
  let ended: Promise<void>;

  const open = async () => {
    let end: () => void = () => undefined;
    ended = new Promise((resolve) => (end = resolve));
    const starting = () => startEmbeddedPostgres({ data_dir: folder, log: silentLog, settings, onExit: () => end() });
    server = await withEnvironment(options.env ?? {}, starting);
    own(server.pid);
  };
  const query = async (url: string, sql: string, values: unknown[] = []) => {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
    client.on('error', () => undefined); // a cut shows in the statement that meets it
    await client.connect();
    try {
      return (await client.query(sql, values)).rows;
    } finally {
      await client.end();
    }
  };
  const admin = () => `postgresql://lumio@${host}:5432/lumio`;
  await open();
  if ((await query(admin(), 'select from pg_roles where rolname = $1', [ORDINARY_ROLE])).length === 0) {
    await query(admin(), `create role ${ORDINARY_ROLE} login`);
  }

  return {
    host,
    get pid() {
      return server.pid;
    },
    async createDatabase() {
      const name = `lumio_test_${randomBytes(6).toString('hex')}`;
      await query(admin(), `create database ${name} owner ${ORDINARY_ROLE}`);
      return ordinaryUrl(admin(), name);
    },
    query,
    async kill() {
      signalTree(server.pid, 'SIGKILL');
      await ended;
    },
    stop: () => server.stop(),
    async start() {
      disown(server.pid);
      await open();
    },
    async terminate(url) {
      assertDisposable(url);
      const sql =
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and usename = current_user and pid <> pg_backend_pid()';
      return (await query(url, sql, [new URL(url).pathname.slice(1)])).length;
    },
    async dispose() {
      await server.stop();
      disown(server.pid);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A database inherits the environment of whoever starts it. */
async function withEnvironment<T>(env: Record<string, string>, work: () => Promise<T>): Promise<T> {
  const before = { ...process.env };
  Object.assign(process.env, env);
  try {
    return await work();
  } finally {
    for (const name of Object.keys(env)) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
  }
}
