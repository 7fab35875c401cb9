import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { ROOT, rounded } from './harness';
import { clients, type Dialect } from './ws-load';

/** Mark in each message of a benchmark, before its intended send time: 16 digits. */
const MARK = '"at":"';
const DIGITS = 16;
/** A histogram's step, microseconds. */
const STEP_US = 100;
const STEPS = 100_000;

/** Microseconds of the machine's monotonic clock, which all its processes share. */
export const nowUs = (): number => Number(process.hrtime.bigint() / 1_000n);

/** Makes a message of `bytes` bytes with its intended send time. */
export const stamped = (at_us: number, bytes: number): string => {
  const head = `{${MARK}${String(Math.floor(at_us)).padStart(DIGITS, '0')}","text":"`;
  return `${head}${'x'.repeat(bytes - head.length - 2)}"}`;
};

export interface Received {
  count: number;
  p50_ms: number;
  p99_ms: number;
}

/** Clients in a process of their own, next to the generator: they count and time the messages. */
export class Receivers {
  private constructor(
    private readonly child: ChildProcess,
    readonly count: number,
  ) {}

  /** Resolves when all are on the channel. `headers` has one line per client, `each` its other own settings. */
  static async open(
    url: string,
    count: number,
    dialect: Wire,
    headers: readonly string[] = [],
    each: readonly Own[] = [],
  ): Promise<Receivers> {
    const child = fork(join(ROOT, 'dist/bench/receivers.js'), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    const kill = () => child.kill('SIGKILL');
    process.once('exit', kill);
    child.once('exit', () => process.off('exit', kill));
    const receivers = new Receivers(child, count);
    await receivers.ask({ url, count, dialect, headers, each });
    return receivers;
  }

  /** Messages since the last {@link reset}. */
  received = (): Promise<Received> => this.ask('report');

  async reset(): Promise<void> {
    await this.ask('reset');
  }

  close(): void {
    this.child.kill('SIGKILL');
  }

  private ask<Answer>(question: unknown): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const ended = () => reject(new Error('the receivers ended'));
      this.child.once('exit', ended);
      this.child.once('message', (answer: { error?: string }) => {
        this.child.off('exit', ended);
        if (answer.error === undefined) resolve(answer as Answer);
        else reject(new Error(answer.error));
      });
      this.child.send(question as object);
    });
  }
}

/** A dialect that can be sent to another process: all clients share the path. */
export type Wire = Omit<Dialect, 'upgrade'> & { path: string };
type Own = Partial<Pick<Dialect, 'hello' | 'ready'>>;

export const PLAIN_WS: Wire = { path: '/', hello: ['hello'], ready: null, alive: 'ping' };
export const SOCKET_IO: Wire = {
  path: '/socket.io/?EIO=4&transport=websocket',
  hello: ['40'],
  ready: '40{',
  ping: ['2', '3'],
};

interface Opening {
  url: string;
  count: number;
  dialect: Wire;
  headers: readonly string[];
  each: readonly Own[];
}

/** Main loop of the clients' process. */
function serve(): void {
  const histogram = new Uint32Array(STEPS + 1);
  let count = 0;
  const take = (frame: Buffer): void => {
    const now = nowUs();
    for (let at = frame.indexOf(MARK); at >= 0; at = frame.indexOf(MARK, at + DIGITS)) {
      let sent = 0;
      for (let n = at + MARK.length; n < at + MARK.length + DIGITS; n += 1) sent = sent * 10 + frame[n]! - 48;
      histogram[Math.min(STEPS, Math.max(0, Math.floor((now - sent) / STEP_US)))]! += 1;
      count += 1;
    }
  };
  const percentile = (share: number): number => {
    let seen = 0;
    for (let step = 0; step <= STEPS; step += 1) {
      seen += histogram[step]!;
      if (seen > count * share) return rounded(((step + 0.5) * STEP_US) / 1_000);
    }
    return NaN;
  };
  process.on('message', (question: string | Opening) => {
    if (question === 'report') {
      process.send!({ count, p50_ms: percentile(0.5), p99_ms: percentile(0.99) });
    } else if (typeof question === 'string') {
      histogram.fill(0);
      count = 0;
      process.send!({});
    } else {
      const { url, dialect, headers, each } = question;
      const upgrade = (n: number) => {
        const [name, value] = headers[n]?.split(': ') ?? [];
        return { path: dialect.path, headers: value === undefined ? {} : { [name!]: value } };
      };
      const own = (n: number) => ({ ...dialect, upgrade, ...each[n] });
      clients(url, question.count, own, take).then(
        () => process.send!({}),
        (error: Error) => process.send!({ error: error.message }),
      );
    }
  });
  process.on('disconnect', () => process.exit());
}

if (require.main === module) serve();
