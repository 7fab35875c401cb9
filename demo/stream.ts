import { setTimeout as sleep } from 'node:timers/promises';
import { createDeliveries, type DemoCredentials, type DemoRequest } from './deliveries';
import { createStory } from './story';

export interface DemoOptions {
  /**
   * The same seed tells the same story (ids and times differ, or every run would be a duplicate of the last). Default
   * 7.
   */
  seed?: number;
  /** Average happenings a second; bursts are faster. Default 2. */
  rate?: number;
  /** Ends it. Default: it goes on until the process ends. */
  signal?: AbortSignal;
  /** Takes a status line. Default: standard output. */
  print?: (line: string) => void;
  /** Milliseconds between status lines. Default 5000. */
  status_every_ms?: number;
}

export interface DemoTotals {
  accepted: number;
  refused: number;
  /** Requests that got no answer, or a 5xx, and were given up after retries. */
  lost: number;
}

/** Requests on their way at once: a slow server slows the story, it does not pile up. */
const IN_FLIGHT = 32;
const ATTEMPTS = 5;
const TIMEOUT_MS = 10_000;

/**
 * Plays a lifelike stream into a running development server through its front door: signed webhooks of Kick, YouTube,
 * Trovo and Shopify, emitted Twitch events and test events, at a human, changing rate. What is not answered or answered
 * 5xx or 429 is sent again, byte for byte, as vendors do.
 */
export async function runDemo(credentials: DemoCredentials, options: DemoOptions = {}): Promise<DemoTotals> {
  const {
    seed = 7,
    rate = 2,
    signal,
    print = (line) => void process.stdout.write(`${line}\n`),
    status_every_ms = 5000,
  } = options;
  const story = createStory(seed);
  const deliveries = createDeliveries(credentials);
  const totals: DemoTotals = { accepted: 0, refused: 0, lost: 0 };
  const under_way = new Set<Promise<void>>();
  let last_problem = '';
  let printed = { at: Date.now(), accepted: 0 };

  function status(): void {
    const seconds = (Date.now() - printed.at) / 1000;
    const speed = ((totals.accepted - printed.accepted) / seconds).toFixed(1);
    printed = { at: Date.now(), accepted: totals.accepted };
    const problem = last_problem === '' ? '' : `  last problem: ${last_problem}`;
    print(
      `demo  ${story.mood().padEnd(6)}  ${speed}/s  accepted ${totals.accepted}  refused ${totals.refused}  lost ${totals.lost}${problem}`,
    );
    last_problem = '';
  }

  async function send(request: DemoRequest): Promise<void> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      let wait_ms = 2 ** attempt * 250;
      try {
        const { path, headers, body } = request;
        const response = await fetch(new URL(path, credentials.base_url), {
          method: 'POST',
          headers,
          body,
          signal: AbortSignal.timeout(TIMEOUT_MS),
        });
        const text = await response.text();
        if (response.ok) return void (totals.accepted += 1);
        last_problem = `${path} ${response.status} ${text.slice(0, 120)}`;
        if (response.status < 500 && response.status !== 429) return void (totals.refused += 1);
        wait_ms = Number(response.headers.get('retry-after') ?? 0) * 1000 || wait_ms;
      } catch (error) {
        last_problem = `${request.path} ${(error as Error).message}`;
      }
      // the end of the demo is often the end of the server: that is no loss
      if (signal?.aborted) return;
      if (attempt === ATTEMPTS) break;
      await pause(wait_ms, signal);
    }
    totals.lost += 1;
  }

  const timer = setInterval(status, status_every_ms);
  try {
    while (!signal?.aborted) {
      const requests = deliveries(story.next());
      const sent = (async () => {
        for (const request of requests) await send(request);
      })().finally(() => under_way.delete(sent));
      under_way.add(sent);
      if (under_way.size >= IN_FLIGHT) await Promise.race(under_way);
      await pause(story.pause(rate) * 1000, signal);
    }
    await Promise.all(under_way);
  } finally {
    clearInterval(timer);
  }
  status();
  return totals;
}

/** Ends early, and quietly, when the signal does. */
async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal?.aborted) throw error;
  }
}
