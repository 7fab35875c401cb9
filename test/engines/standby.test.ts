import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { ownerFor } from '../../engines/postgres/embedded/run-as';
import { Client } from '../support/realtime';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';
import { freePort } from './support/process';

const PROGRAMS = '/usr/lib/postgresql/15/bin';
const owner = ownerFor();
const AS = { ...owner, cwd: '/', stdio: 'ignore' as const };

/** One PostgreSQL 15 on a TCP port of its own. */
class Cluster {
  private server: ChildProcess | undefined;

  constructor(
    readonly folder: string,
    readonly port: number,
  ) {}

  async query(text: string, values?: unknown[]): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({ host: '127.0.0.1', port: this.port, user: 'postgres', database: 'postgres' });
    try {
      await client.connect();
      return (await client.query(text, values)).rows;
    } finally {
      await client.end();
    }
  }

  async start(): Promise<void> {
    const args = ['-D', this.folder, '-k', this.folder, '-p', String(this.port), '-c', 'listen_addresses=127.0.0.1'];
    this.server = spawn(join(PROGRAMS, 'postgres'), args, AS);
    const answers = () => this.query('select 1').catch(() => undefined);
    await eventually(answers, 'the PostgreSQL server');
  }

  async end(signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
    const { server } = this;
    this.server = undefined;
    if (!server) return;
    const ended = new Promise((done) => server.once('exit', done));
    server.kill(signal);
    await ended;
  }
}

/** An address that stays, as of a virtual IP: it leads to the server of the moment. */
async function virtualAddress(target: { port: number }) {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(target.port, '127.0.0.1');
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** An asynchronous standby takes over without the last commits: nothing of them goes on in memory. */
test('a standby without the last events is promoted: the process ends, the next one goes on without them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lumio-standby-'));
  const clusters = [new Cluster(join(folder, 'first'), await freePort())];
  const [first] = clusters as [Cluster];
  const target = { port: first.port };
  const address = await virtualAddress(target);
  let server: TestServer | undefined;
  try {
    for (const path of [folder, first.folder]) {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      if (owner) chownSync(path, owner.uid, owner.gid);
    }
    const initdb = ['-D', first.folder, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--locale=C.UTF-8'];
    execFileSync(join(PROGRAMS, 'initdb'), initdb, AS);
    await first.start();
    await first.query('create role lumio login');
    await first.query('create database lumio_test owner lumio');

    const standby = new Cluster(join(folder, 'standby'), await freePort());
    clusters.push(standby);
    const from = ['-h', '127.0.0.1', '-p', String(first.port), '-U', 'postgres'];
    const copy = [...from, '-D', standby.folder, '-R', '-X', 'stream', '-c', 'fast'];
    execFileSync(join(PROGRAMS, 'pg_basebackup'), copy, AS);
    await standby.start();

    server = await startServer({
      // No database of the run.
      embedded: true,
      env: {
        LUMIO_DATABASE__URL: `postgresql://lumio@127.0.0.1:${address.port}/lumio_test`,
        LUMIO_SECRETS__KEYS: `test:${randomBytes(32).toString('base64')}`,
      },
    });
    const { credentials } = server;
    const channel = `events:${credentials.account_id}`;
    const api = (of: TestServer) => new ApiClient(of.base_url, credentials.access_token);
    const follow = async (of: TestServer, n: number) => {
      expect((await new VendorCloud(of.base_url, credentials).kickFollow(n, `delivery-${n}`)).status).toBe(200);
    };
    const events = (of: TestServer, count: number) =>
      eventually(async () => ((await api(of).allEvents()).length === count ? true : undefined), `${count} events`);
    const addKey = async (of: TestServer, label: string) => {
      const { status } = await api(of).send('POST', '/v1/api-keys', { label, permissions: ['events:read'] });
      expect(status).toBe(201);
    };
    const labels = async (of: TestServer): Promise<string[]> =>
      (await api(of).get('/v1/api-keys')).body.data.map(({ label }: { label: string }) => label);

    await follow(server, 1);
    await addKey(server, 'Kept');
    await events(server, 1);
    const before = await labels(server);
    expect(before).toContain('Kept');
    const [{ at } = {}] = await first.query('select pg_current_wal_lsn() as at');
    const arrived = () => standby.query('select pg_last_wal_replay_lsn() >= $1 as yes', [at]);
    await eventually(async () => ((await arrived())[0]!.yes ? true : undefined), 'the standby');
    await standby.end('SIGINT');

    const socket = await Client.open(server.ws_url, credentials.access_token);
    expect((await socket.subscribe(channel)).type).toBe('subscribed');
    await follow(server, 2);
    await follow(server, 3);
    await socket.until(() => socket.events(channel).length === 2, 'the messages that will be lost');
    const lost_id = socket.events(channel)[0]!.id as string;
    await addKey(server, 'Lost');
    await events(server, 3);
    expect(await labels(server)).toContain('Lost');
    await first.end('SIGQUIT');
    await standby.start();
    await standby.query('select pg_promote()');
    target.port = standby.port;

    expect(await server.ended).toBe(1);
    expect(server.output()).toMatch(/the database is on timeline 00000002 and was on 00000001/);
    socket.end();

    server = await server.restart();
    expect(await labels(server)).toEqual(before);
    await events(server, 1);
    await follow(server, 4);
    await addKey(server, 'New');
    await events(server, 2);
    expect([...(await labels(server))].sort()).toEqual([...before, 'New'].sort());
    // Ids of messages that the standby never had belong to another epoch.
    const again = await Client.open(server.ws_url, credentials.access_token);
    expect(await again.subscribe(channel, lost_id)).toMatchObject({ type: 'subscribed', recovered: false });
    await follow(server, 5);
    await again.until(() => again.events(channel).length === 1, 'the new message');
    again.end();
    // A restart on the same timeline keeps the epoch.
    await server.stop();
    const epoch = async () => {
      const client = new pg.Client({ host: '127.0.0.1', port: standby.port, user: 'lumio', database: 'lumio_test' });
      await client.connect();
      const { rows } = await client.query(`select name, value from installation where name in ('epoch', 'timeline')`);
      await client.end();
      return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
    };
    const now = await epoch();
    expect(now.timeline).toBe('00000002');
    server = await server.restart();
    expect(await epoch()).toEqual(now);
  } finally {
    await server?.dispose();
    address.close();
    for (const cluster of clusters) await cluster.end('SIGQUIT');
    rmSync(folder, { recursive: true, force: true });
  }
});
