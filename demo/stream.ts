import { retry } from '../lib/async/retry';
import { pause } from '../lib/async/signal';
import { createDeliveries } from './deliveries';
import type { DemoCredentials, DemoRequest } from './vendor-requests';
import { type Beat, createStory } from './story';

export interface DemoOptions {
  /** Seed of the story; ids and times differ per run, otherwise each run would be a duplicate. Default 7. */
  seed?: number;
  /** Average beats a second; bursts are faster. Default 2. */
  rate?: number;
  /** Ends the demo. Default: it runs until the process ends. */
  signal?: AbortSignal;
  /** Takes a status line. Default: standard output. */
  print?: (line: string) => void;
  /**
   * Plays a beat elsewhere; false: the demo sends it. Default: the demo sends all. The next status line shows a problem
   * that is reported.
   */
  play?: (beat: Beat, onProblem: (problem: string) => void) => boolean;
  /** Milliseconds between status lines. Default 5000. */
  status_every_ms?: number;
}

export interface DemoTotals {
  accepted: number;
  refused: number;
  /** Requests without an answer, or with a 5xx, after all retries. */
  lost: number;
}

/** Concurrent requests: a slow server slows the story, and requests do not pile up. */
const IN_FLIGHT = 32;
const ATTEMPTS = 5;
const TIMEOUT_MS = 10_000;

/**
 * Plays a lifelike stream into a running development server through its front door: signed webhooks of Kick, YouTube,
 * Trovo and Shopify, emitted Twitch events and test events, at a human, changing rate. Requests without an answer, or
 * answered 5xx or 429, are repeated byte for byte, as vendors do.
 */
export async function runDemo(credentials: DemoCredentials, options: DemoOptions = {}): Promise<DemoTotals> {
  const {
    seed = 7,
    rate = 2,
    signal,
    print = (line) => void process.stdout.write(`${line}\n`),
    status_every_ms = 5000,
    play = () => false,
  } = options;
  const story = createStory(seed);
  const deliveries = createDeliveries(credentials);
  const totals: DemoTotals = { accepted: 0, refused: 0, lost: 0 };
  const under_way = new Set<Promise<void>>();
  let last_problem = '';
  let live_since: string | undefined;
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
    const { path, headers, body } = request;
    const url = new URL(path, credentials.base_url);
    const post = async () => {
      const response = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(TIMEOUT_MS) });
      const text = await response.text();
      if (response.ok) return true;
      last_problem = `${path} ${response.status} ${text.slice(0, 120)}`;
      if (response.status < 500 && response.status !== 429) return false;
      throw new NotNow(Number(response.headers.get('retry-after') ?? 0) * 1000);
    };
    try {
      const taken = await retry(post, {
        first_ms: 1000,
        most_ms: 8000,
        tries: ATTEMPTS,
        signal,
        passing: () => true,
        asked_ms: (error) => (error instanceof NotNow && error.asked_ms > 0 ? error.asked_ms : undefined),
        onFailure: (error) => {
          if (!(error instanceof NotNow)) last_problem = `${path} ${(error as Error).message}`;
        },
      });
      if (taken) totals.accepted += 1;
      else totals.refused += 1;
    } catch {
      // The demo often ends together with the server, which is not a loss.
      if (!signal?.aborted) totals.lost += 1;
    }
  }

  const timer = setInterval(status, status_every_ms);
  try {
    while (!signal?.aborted) {
      const beat = story.next();
      if (beat.kind === 'stream') {
        if (beat.is_live) live_since = new Date().toISOString();
        beat.started_at = live_since;
      }
      const requests = play(beat, (problem) => (last_problem = problem)) ? [] : deliveries(beat);
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

/** The server requests a retry. */
class NotNow extends Error {
  constructor(readonly asked_ms: number) {
    super('not now');
  }
}
