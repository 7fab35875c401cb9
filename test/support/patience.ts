/** How long a test waits for what nothing but a hang keeps from coming, on a busy machine too. */
export const PATIENCE_MS = 60_000;

const LOOK_EVERY_MS = 25;

/** What a look is compared with: a request that costs next to nothing, over the same way. */
export type Calibrate = () => Promise<unknown>;

/** The liveness probe of a server, which asks no engine. */
export const probeOf =
  ({ base_url }: { base_url: string }): Calibrate =>
  async () =>
    (await fetch(`${base_url}/v1`)).text();

const milliseconds = async (work: () => Promise<unknown>): Promise<number> => {
  const from = performance.now();
  await work();
  return performance.now() - from;
};

/** False in `npm test`, which asserts no times (jest.config.cjs); true in every other suite. */
const ASSERTS_TIMES = (globalThis as { ASSERTS_TIMES?: boolean }).ASSERTS_TIMES ?? true;

/**
 * Calls `look` until it returns something other than undefined. Fails after the promised time, which counts the pauses
 * between calls and the part of each call beyond the duration of `calibrate`: that part is the server's, and the rest
 * shows how slow the machine is. In `npm test` only a hang fails it.
 */
export async function promised<T>(
  look: () => Promise<T | undefined>,
  what: string,
  promised_ms: number,
  calibrate: Calibrate = async () => undefined,
): Promise<T> {
  const limit_ms = ASSERTS_TIMES ? promised_ms : Math.max(promised_ms, PATIENCE_MS);
  for (let counted_ms = 0; counted_ms <= limit_ms; counted_ms += LOOK_EVERY_MS) {
    let found: T | undefined;
    const look_ms = await milliseconds(async () => (found = await look()));
    counted_ms += Math.max(0, look_ms - (await milliseconds(calibrate)));
    if (found !== undefined && counted_ms <= limit_ms) return found;
    await new Promise((wait) => setTimeout(wait, LOOK_EVERY_MS));
  }
  throw new Error(`not within the ${limit_ms} ms that are promised: ${what}`);
}

/**
 * Limit of a measured duration: `ms` times the slowness of the machine. In `npm test` it is never below PATIENCE_MS, so
 * that only a hang exceeds it.
 */
export const timeLimit = (ms: number): number => (ASSERTS_TIMES ? ms * slowness() : Math.max(ms, PATIENCE_MS));

/** What becomes of sockets of a server within the five seconds that it promises. */
export async function inTime<T>(sockets: Promise<T>, server: { base_url: string }): Promise<T> {
  let over: true | undefined;
  const ended = sockets.finally(() => (over = true));
  const probe = probeOf(server);
  const look = async () => {
    await probe();
    return over;
  };
  const [result] = await Promise.all([ended, promised(look, 'what becomes of the sockets', 5_000, probe)]);
  return result;
}

/** What is computed to see how fast the machine is, in milliseconds of CPU. */
const SAMPLE_MS = 100;
/** A machine that is slower still has to be given less to do. */
const MAX_SLOWNESS = 4;

/** What was measured in this test file; `environment.cjs` reports it with failures and in ci-minutes. */
declare global {
  var lumio_slowness: number[] | undefined;
}

/**
 * How many times longer everything lasts now than on a machine of one's own, at most four times: what a computation
 * takes over its time of the processor. A limit on what lasts is multiplied with it.
 */
export function slowness(): number {
  const [from, before] = [performance.now(), process.cpuUsage()];
  const used = () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  while (used() < SAMPLE_MS) Math.sqrt(performance.now());
  const measured = (performance.now() - from) / used();
  (globalThis.lumio_slowness ??= []).push(measured);
  return Math.min(MAX_SLOWNESS, Math.max(1, measured));
}
