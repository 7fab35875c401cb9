// Measures what one event, message, connection and query cost on this machine, for docs/scaling.md: CPU of the server
// and of its PostgreSQL apart, memory per socket, bytes on disk. CPU per unit holds on a busy machine where rates do
// not. Takes about a minute.
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { build, install, root } from './prepare.mjs';

install({ dev: false });
await build();
const require = createRequire(join(root, 'package.json'));
const { WebSocket } = require('ws');
const pg = require('pg');
const TICKS = 100;
const SOCKETS = Number(process.env.SOCKETS ?? 2000);
const EVENTS = Number(process.env.EVENTS ?? 10_000);

const data_dir = mkdtempSync(join(tmpdir(), 'lumio-costs-'));
const env = {
  ...process.env,
  LUMIO_DATA_DIR: data_dir,
  LUMIO_PORT: '0',
  LUMIO_METRICS__PORT: '0',
  LUMIO_LOG_LEVEL: 'warn',
};
const server = spawn(process.execPath, ['dist/bin/main.js', 'start'], {
  cwd: root,
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const gone = new Promise((done) => server.once('exit', done));
const sockets = [];
try {
  await new Promise((ready, fail) => {
    server.stdout.on('data', (chunk) => String(chunk).includes('lumio ready') && ready());
    server.once('exit', (code) => fail(new Error(`the server ended with code ${code}`)));
  });
  const credentials = JSON.parse(readFileSync(join(data_dir, 'dev-credentials.json'), 'utf8'));
  const { runningUrl } = require(join(root, 'dist/engines/postgres/embedded/server.js'));
  const db = new pg.Client({ connectionString: runningUrl(data_dir) });
  db.on('error', (error) => console.error(error.message));
  await db.connect();
  const size = async () =>
    Number((await db.query('select pg_database_size(current_database()) as bytes')).rows[0].bytes);
  const logged = async () => Number((await db.query('select count(*) as n from platform_event_logs')).rows[0].n);

  const post = (n) => {
    const body = JSON.stringify({
      type: 'channel.subscribe',
      channel_id: credentials.connections.trovo.platform_channel_id,
      message_id: `m-${n}`,
      data: { uid: String(n % 5000), nick_name: `viewer ${n}`, padding: 'x'.repeat(300) },
    });
    const signature = createHmac('sha256', credentials.webhook_signing.trovo_secret).update(body).digest('hex');
    return fetch(`${credentials.base_url}/v1/webhooks/trovo`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', 'x-trovo-signature': signature },
    }).then(taken);
  };
  const get = () =>
    fetch(`${credentials.base_url}/v1/events?limit=25`, {
      headers: { authorization: `Bearer ${credentials.system_key}`, 'x-lumio-account': credentials.account_id },
    }).then(taken);

  // Memory first, on a fresh heap; the first thousand sockets pay for the code that serves them.
  await open(1000);
  const warm_rss = await steadyRss();
  await open(SOCKETS);
  const rss = await steadyRss();
  const each = (rss - warm_rss) / SOCKETS / 1024;
  console.log(
    `a socket, authenticated and subscribed: ${each.toFixed(1)} KB in the process (${SOCKETS} beyond the first 1000)`,
  );
  for (const socket of sockets.splice(0)) socket.terminate();

  await load(2000, (n) => post(-n - 1), 32);
  const before = await logged();
  const bytes = await size();
  const ingest = await cost(async () => {
    await load(EVENTS, post, 64);
    while ((await logged()) < before + EVENTS) await sleep(50);
  });
  show(`webhook to read model, ${EVENTS} of ~430 bytes`, ingest, EVENTS);
  console.log(`  disk: ${Math.round(((await size()) - bytes) / EVENTS)} bytes an event`);

  await load(500, get, 16);
  show('GET /v1/events, 25 rows', await cost(() => load(4000, get, 32)), 4000);

  await open(SOCKETS);
  show(
    `idle, ${SOCKETS} sockets pinging every 10 s, per socket and second`,
    await cost(async () => {
      const timers = sockets.map((socket, index) =>
        setTimeout(() => socket.send('{"type":"ping"}'), (index / SOCKETS) * 10_000),
      );
      await sleep(10_000);
      timers.forEach(clearTimeout);
    }),
    SOCKETS * 10,
  );

  let received = 0;
  for (const socket of sockets)
    socket.on('message', (data) => {
      if (String(data).includes('trovo:')) received += 1;
    });
  const messages = 100;
  show(
    `fan-out of ${messages} events to ${SOCKETS} sockets, one by one, per delivery`,
    await cost(async () => {
      await load(messages, (n) => post(1e6 + n), 1);
      const deadline = Date.now() + 60_000;
      while (received < messages * SOCKETS && Date.now() < deadline) await sleep(20);
      if (received !== messages * SOCKETS) throw new Error(`${received} of ${messages * SOCKETS} messages came`);
    }),
    messages * SOCKETS,
  );
  await db.end();

  async function open(count) {
    for (let n = 0; n < count; n += 100) sockets.push(...(await Promise.all(Array.from({ length: 100 }, connect))));
  }

  function connect() {
    return new Promise((open, fail) => {
      const socket = new WebSocket(credentials.ws_url, {
        headers: { authorization: `Bearer ${credentials.system_key}` },
      });
      socket.once('error', fail);
      socket.on('message', (data) => {
        const { type } = JSON.parse(String(data));
        if (type === 'welcome')
          socket.send(JSON.stringify({ type: 'subscribe', channel: `events:${credentials.account_id}` }));
        if (type === 'subscribed') open(socket);
      });
    });
  }
} finally {
  for (const socket of sockets) socket.terminate();
  server.kill('SIGTERM');
  await gone;
  rmSync(data_dir, { recursive: true, force: true });
}

async function taken(answer) {
  if (answer.status !== 200) throw new Error(`${answer.url} answered ${answer.status}`);
  return answer.arrayBuffer();
}

async function load(count, call, at_once) {
  let next = 0;
  await Promise.all(
    Array.from({ length: at_once }, async () => {
      while (next < count) await call(next++);
    }),
  );
}

/** CPU seconds of the server and of the processes below it. */
function cpu() {
  const parents = new Map();
  const used = new Map();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      parents.set(pid, fields[1]);
      // a backend that ended is in its parent's count of children
      used.set(pid, (Number(fields[11]) + Number(fields[12]) + Number(fields[13]) + Number(fields[14])) / TICKS);
    } catch {
      continue; // ended while it was being read
    }
  }
  const below = (pid) => {
    for (let at = pid; at !== undefined && at !== '0'; at = parents.get(at)) if (at === String(server.pid)) return true;
    return false;
  };
  let database = 0;
  for (const pid of used.keys()) if (pid !== String(server.pid) && below(pid)) database += used.get(pid);
  return { server: used.get(String(server.pid)), database };
}

async function cost(work) {
  const from = cpu();
  const started = performance.now();
  await work();
  const to = cpu();
  return {
    server: to.server - from.server,
    database: to.database - from.database,
    seconds: (performance.now() - started) / 1000,
  };
}

function show(what, { server: own, database, seconds }, units) {
  const us = (cpu_seconds) => ((cpu_seconds / units) * 1e6).toFixed(1);
  console.log(
    `${what}: server ${us(own)} us, PostgreSQL ${us(database)} us CPU each; ${Math.round(units / seconds)} a second here`,
  );
}

/** Resident bytes once they stand still. */
async function steadyRss() {
  let last = 0;
  for (;;) {
    const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]) * 1024;
    if (Math.abs(rss - last) < 1e6) return rss;
    last = rss;
    await sleep(1500);
  }
}
