import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { seeded } from '../../faults/support/dose';
import { DATABASE_KILLED } from '../../faults/support/excuses';
import { checkLog, compareIds } from '../../faults/support/oracles';
import { Client, type ServerMessage } from '../../support/realtime';
import { startServer, type TestServer } from '../../support/server';
import { ApiClient, eventually } from '../../support/vendor-cloud';

/** Repeats a run: `LUMIO_TEST_SEED=… npm run test:slow -- test/slow/e2e/crash.test.ts`. */
const SEED = Number(process.env.LUMIO_TEST_SEED ?? 20260214);
const WEBHOOKS = 1500;
const IN_FLIGHT = 32;

interface Sent {
  /** Answered 200. */
  acked: Set<string>;
  /** Sent at all: those without an answer may be there or not. */
  tried: Set<string>;
}

/** One kill after another on the same data folder: what was acknowledged stays, once; nothing else appears. */
describe('killed in a flood of webhooks', () => {
  let server: TestServer;
  let agent: Agent;
  const sent: Sent = { acked: new Set(), tried: new Set() };
  /** External ids that were stored when the round before had ended. */
  let of_rounds_before: string[] = [];

  beforeAll(async () => {
    agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT });
    server = await startServer({ embedded: true });
  });
  afterAll(async () => {
    agent.destroy();
    await server?.dispose();
  });

  test.each([
    ['the process', killProcess],
    ['the process and its whole PostgreSQL', killAll],
    ['PostgreSQL alone', killPostgres],
  ])('kill -9 of %s: every acknowledged event is there, exactly once, live and in the log', async (what, kill) => {
    const random = seeded(SEED + what.length);
    const channel = `events:${server.credentials.account_id}`;
    const socket = await Client.open(server.ws_url, server.credentials.access_token);
    const subscribed = await socket.subscribe(channel);
    const round = sent.tried.size;
    const moment = Math.floor(WEBHOOKS * (0.3 + 0.4 * random()));
    const acked_before = sent.acked.size;
    let dying: Promise<void> | undefined;
    await flood(server, agent, round, sent, () => {
      if (sent.acked.size - acked_before >= moment) dying ??= kill(server);
      return dying !== undefined;
    });
    await dying;
    expect(checkLog(server.printed, DATABASE_KILLED)).toEqual([]);
    expect(sent.acked.size - acked_before).toBeGreaterThanOrEqual(moment);
    await socket.closed();
    const live = of(socket, channel);
    const last = live.at(-1)?.id ?? subscribed.id!;

    server = await server.restart();
    const again = await Client.open(server.ws_url, server.credentials.access_token);
    expect(await again.subscribe(channel, last)).toMatchObject({ type: 'subscribed', recovered: true });
    const api = new ApiClient(server.base_url, server.credentials.access_token);
    await verify(api, sent);

    // What came before the cut and what comes after it is the log from the subscription on: no hole, nothing twice, in
    // order.
    const marker = `round-${round}-end`;
    expect(await postTrovo(server, agent, marker)).toMatchObject({ status: 200 });
    sent.tried.add(marker);
    sent.acked.add(marker);
    await again.until(
      () => of(again, channel).some((message) => external(message) === `trovo:${marker}`),
      'the marker',
    );
    const received = [...live, ...of(again, channel)];
    const subscribed_at = seqOf(subscribed.id!);
    expect(received.map((message) => seqOf(message.id!))).toEqual(
      received.map((_, index) => subscribed_at + index + 1),
    );
    const stored = (await api.allEvents()).map((event) => event.external_id as string);
    const before = new Set(of_rounds_before);
    const new_ones = stored.filter((id) => !before.has(id));
    expect(received.map(external).sort()).toEqual(new_ones.sort());
    of_rounds_before = stored;
    expect(checkLog(server.printed, [])).toEqual([]);
    again.end();
  });

  test('a last start after all of it serves the same', async () => {
    expect(await server.stop()).toBe(0);
    server = await server.restart();
    await verify(new ApiClient(server.base_url, server.credentials.access_token), sent);
  });
});

async function verify(api: ApiClient, { acked, tried }: Sent): Promise<void> {
  const total = async () => (await api.get('/v1/events?limit=1')).body._meta.total as number;
  await eventually(async () => ((await total()) >= acked.size ? true : undefined), 'every acknowledged event');
  // Those that were durable and not yet answered come in too; the count stands still when all of them are.
  for (let last = -1, now = await total(); now !== last; now = await total()) {
    last = now;
    await sleep(500);
  }
  const stored = (await api.allEvents()).map((event) => (event.external_id as string).replace('trovo:', ''));
  expect(stored).toHaveLength(await total());
  expect(compareIds(stored, acked, tried)).toEqual([]);
}

/**
 * Sends numbered webhooks, a fixed number at once, until all are sent or `stop` says so; then waits for every answer or
 * its loss.
 */
async function flood(server: TestServer, agent: Agent, from: number, sent: Sent, stop: () => boolean): Promise<void> {
  let next = from;
  const lane = async () => {
    while (next < from + WEBHOOKS && !stop()) {
      const id = String((next += 1));
      sent.tried.add(id);
      const answer = await postTrovo(server, agent, id);
      if (answer?.status === 200) sent.acked.add(id);
      else if (answer && !(answer.status === 503 && Number(answer.retry_after) > 0))
        throw new Error(`a webhook was answered ${answer.status}, Retry-After ${answer.retry_after}`);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
}

/** The answer; undefined when the connection ended without one. */
function postTrovo(
  server: TestServer,
  agent: Agent,
  id: string,
): Promise<{ status: number; retry_after: string | undefined } | undefined> {
  const { connections, webhook_signing } = server.credentials;
  const body = JSON.stringify({
    type: 'channel.spell',
    channel_id: connections.trovo.platform_channel_id,
    message_id: id,
    uid: id,
    gift: 'Winner',
  });
  const signature = createHmac('sha256', webhook_signing.trovo_secret).update(body).digest('hex');
  const headers = { 'content-type': 'application/json', 'x-trovo-signature': signature };
  return new Promise((done) => {
    const req = request(`${server.base_url}/v1/webhooks/trovo`, { method: 'POST', agent, headers }, (res) => {
      res.resume();
      // An answer counts when it came whole: so does a vendor see it.
      res.on('end', () => done({ status: res.statusCode!, retry_after: res.headers['retry-after'] }));
      res.on('error', () => done(undefined));
    });
    req.on('error', () => done(undefined));
    req.end(body);
  });
}

async function killProcess(server: TestServer): Promise<void> {
  await server.kill();
}

async function killPostgres(server: TestServer): Promise<void> {
  killTree(postmaster(server));
  // Lumio ends by itself: it cannot go on without its database, and a supervisor starts it again.
  await server.ended;
}

async function killAll(server: TestServer): Promise<void> {
  const pid = postmaster(server);
  const killed = server.kill();
  killTree(pid);
  await killed;
}

const postmaster = (server: TestServer) =>
  Number(readFileSync(join(server.data_dir, 'postgres/postmaster.pid'), 'utf8').split('\n')[0]);

/** The postmaster and its children, which have sessions of their own. */
function killTree(pid: number): void {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  for (const one of [pid, ...children.map(Number)]) {
    try {
      process.kill(one, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

const of = (client: Client, channel: string): ServerMessage[] =>
  client.messages.filter((message) => message.type === 'event' && message.channel === channel);
const external = (message: ServerMessage): string => String(message.data?.external_id);
const seqOf = (id: string): number => Number(id.slice(id.lastIndexOf('-') + 1));
