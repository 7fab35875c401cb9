import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Clients, clients, type Dialect, lumioClients } from '../../bench/ws-load';
import { PATIENCE_MS } from '../support/patience';
import { dose, SEED, seeded, sleep, until } from './support/dose';
import { Lumio } from './support/lumio';
import { type Link, startToxiproxy, type Toxiproxy } from './support/toxiproxy';

const HOOK = resolve(__dirname, '../../dist/bench/peers/memory-hook.js');

interface Health {
  data: { websocket: { sessions: number } };
}

/** Rows 15 and 16: crowds that come back at once, and clients that are slow, stalled, half-open, or never stay. */
describe('sockets misbehave', () => {
  let folder: string;
  let lumio: Lumio;
  let proxy: Toxiproxy;
  let link: Link;
  let channel: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'lumio-faults-sockets-'));
    const env = { NODE_OPTIONS: `--require ${HOOK}`, BENCH_MEMORY_FILE: join(folder, 'memory') };
    lumio = await Lumio.start({ env });
    channel = `events:${lumio.credentials.account_id}`;
    proxy = await startToxiproxy();
    link = await proxy.link(new URL(lumio.base_url).host);
  });
  afterAll(async () => {
    await lumio?.dispose();
    await proxy?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Stores messages as a projector would: the tail finds them with its next look. */
  const store = (from: number, count: number, pad = ''): Promise<unknown> =>
    lumio.query('select outbox_write($1, $2, $3)', [
      Array<string>(count).fill(channel),
      Array<string>(count).fill('kick:follower'),
      Array.from({ length: count }, (_, n) => JSON.stringify({ n: from + n, pad })),
    ]);

  const dialect = (since?: string): Dialect => ({
    ...lumioClients(channel),
    hello: [JSON.stringify({ type: 'subscribe', channel, ...(since === undefined ? {} : { since }) })],
    // A resumed one must be told so: any other answer is none.
    ...(since === undefined ? {} : { ready: '"recovered":true' }),
    upgrade: () => ({ path: '/v1/ws', headers: { authorization: `Bearer ${lumio.credentials.system_key}` } }),
  });

  /** Clients that keep the numbers that each got, and the last id that anybody did. */
  async function following(count: number, since?: string, base_url = lumio.base_url) {
    const got: number[][] = [];
    let last_id = '';
    const one = (n: number): Dialect => ({ ...dialect(since), onFrame: (frame) => take(n, frame.toString()) });
    const take = (n: number, text: string) => {
      const number = /"n":(\d+)/.exec(text)?.[1];
      if (number === undefined) return;
      (got[n] ??= []).push(Number(number));
      last_id = /"id":"([^"]+)"/.exec(text)![1]!;
    };
    const opened = await clients(base_url, count, one, () => undefined, 200);
    return { ...opened, got, lastId: () => last_id };
  }

  const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n);
  const transactions = async (): Promise<number> => {
    await sleep(1_500); // a backend that has nothing to do tells its figures within a second
    const sql = 'select xact_commit::int as n from pg_stat_database where datname = current_database()';
    return (await lumio.query(sql))[0].n;
  };
  /** Transactions while this is done, above what the server has when nothing is. */
  async function asked(work: () => Promise<unknown>): Promise<number> {
    const [first, start] = [await transactions(), Date.now()];
    const [before, idle_ms] = [await transactions(), Date.now() - start];
    const from = Date.now();
    await work();
    const after = await transactions();
    return after - before - ((before - first) * (Date.now() - from)) / idle_ms;
  }

  /** Bytes of the server's heap after a collection. */
  async function heap(): Promise<number> {
    const file = join(folder, 'memory');
    rmSync(file, { force: true });
    process.kill(lumio.pid, 'SIGUSR2');
    const text = () => (existsSync(file) ? readFileSync(file, 'utf8') : '');
    await until(() => text().endsWith('}'), 'the size of the heap');
    return (JSON.parse(text()) as { used: number }).used;
  }

  test('row 15: a crowd that comes back at once gets exactly what it missed, and the database hardly notices', async () => {
    const crowd = dose(500, 5_000);
    const random = seeded(SEED);
    const first = await following(crowd);
    await store(1, 20);
    await until(() => first.got.length === crowd && first.got.every(({ length }) => length === 20), 'the first twenty');
    const since = first.lastId();
    first.close();
    await store(21, 100);
    const waves: Awaited<ReturnType<typeof following>>[] = [];
    const cost = await asked(async () => {
      // Within a second, as the client library spreads its first tries.
      const coming = Array.from({ length: 20 }, async () => {
        await sleep(random() * 1_000);
        waves.push(await following(crowd / 20, since));
      });
      await Promise.all(coming);
      const all = () => waves.flatMap(({ got }) => got);
      await until(() => all().length === crowd && all().every((got) => got.at(-1) === 120), 'what everybody missed');
    });
    for (const wave of waves) wave.close();
    const expected = range(21, 120);
    expect(waves.flatMap(({ got }) => got).filter((got) => got.join() !== expected.join())).toEqual([]);
    // The socket of a system key is asked about by a statement shared by many; nobody's history is read.
    // One for each socket would be as many as the crowd.
    expect(cost).toBeLessThan(crowd / 2);
  });

  test('row 16: stalled and half-open clients are cut, thousands come and go, neighbours get all, and nothing is left behind', async () => {
    const healthy = await following(50);
    const sessions = async () => ((await (await fetch(`${lumio.base_url}/v1/health`)).json()) as Health).data.websocket;
    // The first of everything makes what stays: compiled code, caches, buckets.
    await churn(600, 200);
    const before = await heap();
    const stalled = await following(5);
    const half_open = await following(5, undefined, `http://127.0.0.1:${link.port}`);
    stalled.pause();
    await link.silence();
    // More than the sockets of those who do not read hold.
    await store(201, 800, 'x'.repeat(10_000));
    let stored = 1_000;
    let running = true;
    const storing = (async () => {
      for (; running; await sleep(250)) {
        await store(stored + 1, 20);
        stored += 20;
      }
    })();
    await churn(dose(4_000, 12_000), 200);
    await until(
      async () => (await sessions()).sessions === 50,
      'those who do not read or answer to be cut',
      2 * PATIENCE_MS,
    );
    running = false;
    await storing;
    const whole = range(201, stored).join();
    await until(() => healthy.got.every((got) => got.at(-1) === stored), 'everything at the healthy ones');
    expect(healthy.got.map((got) => got.join() === whole)).toEqual(Array<boolean>(50).fill(true));
    // Compiled code, and the history with its 256 KiB; for each of the many that came nothing.
    expect((await heap()) - before).toBeLessThan(4_000_000);
    await link.mend();
    for (const some of [healthy, stalled, half_open]) some.close();
    await until(async () => (await sessions()).sessions === 0, 'everybody to be gone');
    expect([lumio.lives, lumio.ends]).toEqual([1, []]);
  });

  /** Opens so many sockets, so many a second, each for a second. */
  async function churn(count: number, a_second: number): Promise<void> {
    const at_once = a_second / 10;
    const open: Promise<Clients>[] = [];
    for (let opened = 0; opened < count; opened += at_once, await sleep(100)) {
      open.push(clients(lumio.base_url, at_once, dialect(), () => undefined));
      if (open.length > 10) (await open.shift()!).close();
    }
    for (const some of open) (await some).close();
  }
});
