import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { median, ROOT, rounded, type TrackOptions } from '../harness';
import { type BenchPostgres, onPostgres, treeCpu } from '../postgres';
import { nowUs, PLAIN_WS, Receivers, SOCKET_IO, stamped, type Wire } from '../receivers';
import { check, type Check, report } from '../report';
import { keys, type Lumio, startLumio, startPeer } from '../system';
import { type Clients, clients, lumioClients } from '../ws-load';

const MESSAGE_BYTES = 300;
/** Publishing connections: each may publish 200 messages a second to Lumio. */
const PUBLISHERS = 8;
/** Messages per second that an account's channels accept without drops; no load here exceeds it. */
const MAX_A_SECOND = 190;
/** Messages of one window, at random times within the time of as many messages at the mean rate. */
const IN_TURN = 20;
/** Messages per second on the small channel next to a large one. */
const SMALL_A_SECOND = 20;
/** Milliseconds after the last message within which all must have arrived for a server to have kept up. */
const KEPT_UP_MS = 1_000;
const GIVEN_UP_MS = 15_000;
const PLAIN = 'plain ws';

interface Contender {
  name: string;
  receivers: Receivers;
  publishers: Clients;
  /** Encodes a message as this server's clients send it. */
  say(message: string): string;
  /** CPU microseconds of the server so far. */
  cpu(): number;
}

interface Step {
  rate: number;
  /** CPU microseconds of the server for one message at one socket. */
  us: number;
  p50_ms: number;
  p99_ms: number;
  /** Share of a core that the server used. */
  core: number;
  missing: number;
  kept_up: boolean;
}

/**
 * A message to 1,000 and to 5,000 sockets, published by a client: the server's cost of a delivery, and its delay,
 * compared with a broadcast by plain `ws`, Socket.IO and NATS, all with their sockets open, one after the other under
 * load. Messages come at random times, as from independent people, equal for all.
 */
export const run = onPostgres(measure);

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
  const nats = await installedNats();
  const checks: Check[] = [];
  const sizes: Record<string, unknown> = {};
  for (const sockets of options.smoke ? [100] : [1_000, 5_000]) {
    const lumio = await startLumio(postgres, `lumio_${sockets}`);
    const stops: (() => unknown)[] = [() => lumio.stop()];
    try {
      const contenders = await open(lumio, nats, sockets, stops);
      sizes[sockets] = await atSize(contenders, lumio, sockets, checks, options);
    } finally {
      for (const stop of stops.reverse()) await stop();
    }
  }
  return report('fanout', [], { sizes, message_bytes: MESSAGE_BYTES, checks }, options);
}

async function atSize(all: Contender[], lumio: Lumio, sockets: number, checks: Check[], { smoke }: TrackOptions) {
  const ms = smoke ? 500 : 3_000;
  const rounds = smoke ? 1 : 5;
  const plain = all.find(({ name }) => name === PLAIN)!;
  const low = smoke ? 50 : 20_000 / sockets;
  for (const contender of all) await step(contender, low, ms, 1);
  const highest = smoke ? low * 4 : Math.min(await highestRate(plain, 60_000 / sockets, ms), MAX_A_SECOND);
  const tables: Record<string, Record<string, Step[]>> = {};
  for (const [load, rate] of [
    ['low', low],
    ['highest', highest],
  ] as const) {
    const steps: Record<string, Step[]> = Object.fromEntries(all.map(({ name }) => [name, []]));
    for (let round = 0; round < rounds; round += 1)
      for (const contender of all) steps[contender.name]!.push(await step(contender, rate, ms, round + 2));
    tables[load] = steps;
    const at = `${sockets} sockets, ${load} rate (${rounded(rate)} messages a second)`;
    console.log(`\nfanout: ${at}`);
    console.table(Object.entries(steps).map(([name, taken]) => ({ name, ...middle(taken), ...ratioOf(steps, name) })));
    const ours = steps.lumio!;
    const { to_plain } = ratioOf(steps, 'lumio');
    checks.push(check(`${at}: CPU a delivery over plain ws's`, to_plain, load === 'low' ? 0.9 : 0.3));
    const usOf = (taken: readonly Step[]) => median(taken.map(({ us }) => us));
    for (const [name, taken] of Object.entries(steps))
      if (load === 'highest' && name !== PLAIN && name !== 'lumio')
        checks.push(check(`${at}: CPU a delivery over ${name}'s`, usOf(ours) / usOf(taken), 0.3));
    const missing = ours.reduce((sum, one) => sum + one.missing, 0);
    checks.push(check(`${at}: messages missing or too many`, missing, 0));
    const p99 = (taken: readonly Step[]) => median(taken.map((one) => one.p99_ms));
    if (load === 'highest') checks.push(check(`${at}: p99 over plain ws's`, p99(ours) / p99(steps[PLAIN]!), 1));
  }
  const saturated = Math.min(highest * 2, MAX_A_SECOND - SMALL_A_SECOND);
  const beside = await smallBeside(lumio, all[0]!, saturated, smoke ? 500 : 5_000);
  checks.push(check(`a channel of 3 beside ${sockets} saturated: p99 over its p99 alone`, beside.times, 2));
  const stalled: Record<string, Stalled> = {};
  for (const [load, rate] of [
    ['quiet', Math.min(20, low)],
    ['busy', highest / 2],
  ] as const) {
    stalled[load] = await besideStalled(lumio, all[0]!, rate, ms, rounds);
    checks.push(
      check(`${sockets} sockets, ${load}: p99 beside a stalled client over without`, stalled[load].times, 1.1),
    );
  }
  return { low, highest, tables, beside, stalled };
}

/** The highest rate, rising by a quarter, at which all messages arrive soon after the last one was sent. */
async function highestRate(plain: Contender, first: number, ms: number): Promise<number> {
  for (let rate = first; ; rate *= 1.25) {
    const taken = await step(plain, rate, ms, 1);
    console.log(`fanout: ${PLAIN} at ${Math.round(rate)} messages a second: ${JSON.stringify(taken)}`);
    if (!taken.kept_up) return rate / 1.25;
  }
}

const middle = (taken: readonly Step[]) => ({
  'us a delivery': rounded(median(taken.map(({ us }) => us))),
  p50_ms: median(taken.map(({ p50_ms }) => p50_ms)),
  p99_ms: median(taken.map(({ p99_ms }) => p99_ms)),
  core: rounded(median(taken.map(({ core }) => core))),
  missing: taken.reduce((sum, { missing }) => sum + missing, 0),
});

/** The median of the rounds' ratios, with the lowest and the highest. */
function ratioOf(steps: Record<string, readonly Step[]>, name: string) {
  const ratios = steps[name]!.map(({ us }, round) => us / steps[PLAIN]![round]!.us);
  return {
    to_plain: rounded(median(ratios)),
    spread: `${rounded(Math.min(...ratios))}-${rounded(Math.max(...ratios))}`,
  };
}

/** Publishes at a rate for a while, and waits for the messages to arrive. */
async function step(
  { receivers, publishers, say, cpu }: Contender,
  rate: number,
  ms: number,
  seed: number,
): Promise<Step> {
  await receivers.reset();
  const [used, started] = [cpu(), performance.now()];
  const said = await publish(rate, ms, seed, (at_us, n) =>
    publishers.send(n % publishers.count, say(stamped(at_us, MESSAGE_BYTES))),
  );
  const wanted = said * receivers.count;
  const ended = performance.now();
  let received = await receivers.received();
  while (received.count < wanted && performance.now() - ended < GIVEN_UP_MS) {
    await sleep(20);
    received = await receivers.received();
  }
  const kept_up = performance.now() - ended < KEPT_UP_MS;
  const used_us = cpu() - used;
  const seconds = (performance.now() - started) / 1_000;
  return {
    rate: rounded(said / ((ended - started) / 1_000)),
    us: used_us / wanted,
    p50_ms: received.p50_ms,
    p99_ms: received.p99_ms,
    core: rounded(used_us / 1e6 / seconds),
    missing: Math.abs(wanted - received.count),
    kept_up,
  };
}

/**
 * Sends messages at random times with this mean rate, equal for each seed; each window of {@link IN_TURN} messages
 * takes its time at that rate, so that no second exceeds it by much. Returns the number of messages.
 */
async function publish(
  rate: number,
  ms: number,
  seed: number,
  send: (at_us: number, n: number) => void,
): Promise<number> {
  const random = generator(seed);
  const count = Math.max(3, Math.round((rate * ms) / 1_000));
  const places = Array.from({ length: count }, (_, n) => n - (n % IN_TURN) + random() * IN_TURN).sort((a, b) => a - b);
  const began_us = nowUs();
  let n = 0;
  for (const place of places) {
    const at_us = began_us + (place * 1_000_000) / rate;
    for (let early = at_us - nowUs(); early > 0; early = at_us - nowUs()) await sleep(Math.max(1, early / 1_000));
    send(at_us, n);
    n += 1;
  }
  return n;
}

/** Numbers from 0 to 1 by a seed (mulberry32). */
function generator(seed: number): () => number {
  let state = seed * 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Delay of a message to three sockets of another channel, alone and next to a saturated large one. */
async function smallBeside(lumio: Lumio, large: Contender, rate: number, ms: number) {
  const small = await lumioContender(lumio, 3, `automations:${lumio.credentials.account_id}`);
  try {
    const alone = await step(small, SMALL_A_SECOND, ms, 1);
    const [beside] = await Promise.all([step(small, SMALL_A_SECOND, ms, 1), step(large, rate, ms, 2)]);
    return { alone, beside, times: beside.p99_ms / alone.p99_ms };
  } finally {
    small.receivers.close();
    small.publishers.close();
  }
}

interface Stalled {
  rate: number;
  without_p99_ms: number;
  with_p99_ms: number;
  /** Median of the rounds. */
  times: number;
}

/**
 * Runs rounds without and with one client on the channel that reads nothing and whose waiting bytes exceed its socket's
 * buffer.
 */
async function besideStalled(lumio: Lumio, on: Contender, rate: number, ms: number, rounds: number): Promise<Stalled> {
  const taken: { without: Step; beside: Step }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const without = await step(on, rate, ms, round);
    const stuck = await stuckClient(lumio);
    taken.push({ without, beside: await step(on, rate, ms, round) });
    stuck.close();
  }
  return {
    rate: rounded(rate),
    without_p99_ms: median(taken.map(({ without }) => without.p99_ms)),
    with_p99_ms: median(taken.map(({ beside }) => beside.p99_ms)),
    times: median(taken.map(({ without, beside }) => beside.p99_ms / without.p99_ms)),
  };
}

/** Opens a client on the large channel whose buffers are full of another channel's messages. */
async function stuckClient({ base_url, credentials }: Lumio): Promise<Clients> {
  const { account_id, system_key } = credentials;
  const [large, full] = [`chat:${account_id}`, `automations:${account_id}`];
  const upgrade = () => ({ path: '/v1/ws', headers: { authorization: `Bearer ${system_key}` } });
  const subscribe = (channel: string) => JSON.stringify({ type: 'subscribe', channel });
  const hello = [subscribe(large), subscribe(full)];
  const stuck = await clients(base_url, 1, { ...lumioClients(full), hello, ready: full, upgrade }, () => undefined);
  stuck.pause();
  const writer = await clients(
    base_url,
    1,
    { ...lumioClients(full), hello: [], ready: 'welcome', upgrade },
    () => undefined,
  );
  const payload = JSON.stringify('x'.repeat(50_000));
  const broadcast = JSON.stringify({ type: 'broadcast', channel: full, payload });
  for (let n = 0; n < 190; n += 1) writer.send(0, broadcast);
  await sleep(1_500);
  writer.close();
  return stuck;
}

async function open(lumio: Lumio, nats: string, sockets: number, stops: (() => unknown)[]): Promise<Contender[]> {
  const ours = await lumioContender(lumio, sockets, `chat:${lumio.credentials.account_id}`);
  const ws = await startPeer('fanout-ws', []);
  stops.push(() => ws.stop());
  const socketio = await startPeer('fanout-socketio', []);
  stops.push(() => socketio.stop());
  const broker = await startNats(nats);
  stops.push(broker.stop);
  const subject = { path: '/', ready: 'PONG', ping: ['PING\r\n', 'PONG\r\n'] as const };
  const hello = 'CONNECT {"verbose":false,"pedantic":false,"headers":false}\r\n';
  const contenders = [
    ours,
    await contender(PLAIN, ws, sockets, PLAIN_WS, { path: '/publish', hello: [], ready: null }, (text) => text),
    await contender(
      'Socket.IO',
      socketio,
      sockets,
      SOCKET_IO,
      { ...SOCKET_IO, hello: ['40{"publisher":true}'] },
      (text) => `42["publish",${text}]`,
    ),
    await contender(
      'NATS',
      broker,
      sockets,
      { ...subject, hello: [`${hello}SUB room 1\r\nPING\r\n`] },
      { ...subject, hello: [`${hello}PING\r\n`] },
      (text) => `PUB room ${text.length}\r\n${text}\r\n`,
    ),
  ];
  for (const { receivers, publishers } of contenders)
    stops.push(() => {
      receivers.close();
      publishers.close();
    });
  return contenders;
}

async function contender(
  name: string,
  { base_url, cpu }: { base_url: string; cpu(): number },
  sockets: number,
  wire: Wire,
  publishing: Wire,
  say: (message: string) => string,
): Promise<Contender> {
  const receivers = await Receivers.open(base_url, sockets, wire);
  const { path, ...dialect } = publishing;
  const upgrade = () => ({ path });
  const publishers = await clients(base_url, PUBLISHERS, { ...dialect, upgrade }, () => undefined);
  return { name, receivers, publishers, say, cpu };
}

/** Each socket has its own key, and five sockets share a person. */
async function lumioContender(lumio: Lumio, sockets: number, channel: string): Promise<Contender> {
  const wire = { ...lumioClients(channel), path: '/v1/ws' };
  const own = channel === `chat:${lumio.credentials.account_id}`;
  const tokens = own ? await keys(lumio, sockets) : Array<string>(sockets).fill(lumio.credentials.system_key);
  const headers = tokens.map((key) => `authorization: Bearer ${key}`);
  const receivers = await Receivers.open(lumio.base_url, sockets, wire, headers);
  const upgrade = () => ({ path: '/v1/ws', headers: { authorization: `Bearer ${lumio.credentials.system_key}` } });
  const to = { ...wire, upgrade, hello: [], ready: '"type":"welcome"' };
  const publishers = await clients(lumio.base_url, PUBLISHERS, to, () => undefined);
  const say = (payload: string) => JSON.stringify({ type: 'broadcast', channel, payload });
  return { name: 'lumio', receivers, publishers, say, cpu: lumio.cpu };
}

async function installedNats(): Promise<string> {
  const installer = pathToFileURL(join(ROOT, 'scripts/engines/install.mjs')).href;
  const { folder, installEngines } = (await import(installer)) as {
    folder: string;
    installEngines(names: string[]): Record<string, string>;
  };
  installEngines(['nats-server']);
  return join(folder, 'nats-server/nats-server');
}

/** Starts NATS with its WebSocket port on the system's core. */
async function startNats(program: string) {
  const folder = mkdtempSync(join(tmpdir(), 'lumio-bench-nats-'));
  const port = 20_000 + Math.floor(Math.random() * 10_000);
  const config = `listen: "127.0.0.1:-1"\nwebsocket { listen: "127.0.0.1:${port}", no_tls: true }\nmax_connections: 100000\n`;
  writeFileSync(join(folder, 'nats.conf'), config);
  const pinned = cpus().length > 1 ? ['taskset', '-c', '0', program] : [program];
  const child = spawn(pinned[0]!, [...pinned.slice(1), '-c', join(folder, 'nats.conf')], { stdio: 'ignore' });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  for (const deadline = Date.now() + 20_000; !(await listens(port)); await sleep(50))
    if (Date.now() > deadline) throw new Error('nats-server does not listen');
  return {
    base_url: `http://127.0.0.1:${port}`,
    cpu: () => treeCpu(child.pid!),
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
      process.off('exit', kill);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const listens = (port: number): Promise<boolean> =>
  new Promise((answer) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => (socket.destroy(), answer(true))).once('error', () => answer(false));
  });
