/** How long a test waits for what nothing but a hang keeps from coming, on a busy machine too. */
export const PATIENCE_MS = 60_000;

const LOOK_EVERY_MS = 25;

/**
 * Looks until `look` gives something other than undefined, for the time that is promised. Only the pauses between looks
 * count: what a look itself takes, by way of the servers that made the promise, shows how late the machine is.
 */
export async function promised<T>(look: () => Promise<T | undefined>, what: string, promised_ms: number): Promise<T> {
  for (let waited_ms = 0; waited_ms <= promised_ms; waited_ms += LOOK_EVERY_MS) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((wait) => setTimeout(wait, LOOK_EVERY_MS));
  }
  throw new Error(`not within the ${promised_ms} ms that are promised: ${what}`);
}

/** What becomes of sockets of a server within the five seconds that it promises. */
export async function inTime<T>(sockets: Promise<T>, server: { base_url: string }): Promise<T> {
  let over: true | undefined;
  const ended = sockets.finally(() => (over = true));
  const look = async () => {
    await fetch(`${server.base_url}/v1/health`);
    return over;
  };
  const [result] = await Promise.all([ended, promised(look, 'what becomes of the sockets', 5_000)]);
  return result;
}

/** What is computed to see how fast the machine is, in milliseconds of CPU. */
const SAMPLE_MS = 100;

/**
 * How many times longer everything lasts now than on a machine of one's own: what a computation takes over its time of
 * the processor. A limit on what lasts is multiplied with it.
 */
export function slowness(): number {
  const [from, before] = [performance.now(), process.cpuUsage()];
  const used = () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  while (used() < SAMPLE_MS) Math.sqrt(performance.now());
  return Math.max(1, (performance.now() - from) / used());
}
