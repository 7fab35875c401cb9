import type { Excuse } from '../../support/printed';
import { slowness } from '../../support/patience';
import { sleep, until } from './dose';
import { ENGINE_AWAY } from './excuses';
import type { Lumio } from './lumio';
import { followersBehind } from './followers';
import { checkBooks, checkChannel, checkChat, checkEvents, checkKeys, checkLog, checkPayments } from './oracles';
import { compareHashes, hashesOf } from './read-models';
import { residentMiB } from './signals';
import type { Sent } from './traffic';

/** What was promised does not hold; `violations` says all of it. */
export class InvariantBroken extends Error {
  constructor(readonly violations: readonly string[]) {
    super(`${violations.length} invariants broken:\n${violations.slice(0, 20).join('\n')}`);
    this.name = 'InvariantBroken';
  }
}

export interface CheckOptions {
  /** Whether read models are rebuilt and compared with the live rows. Default true: all that are declared. */
  rebuild?: boolean;
  /** Longest time until everything durable is applied, see {@link settled}. Default 30 s, as faults promise. */
  settle_ms?: number;
  /** Default 400: the process at rest has about 150, and its young generation 64 and more. */
  rss_mib?: number;
  /** Dead letters that the test made on purpose. */
  parked?: number;
  /** Whether an event must be on the channel. Default: all; a restored installation announces only what came since. */
  announced?: (id: string) => boolean;
  /** Errors in the log that the fault brings about. Default: those of an engine that is away. */
  excused?: readonly Excuse[];
}

export interface Checked {
  events: number;
  keys: number;
  /** Milliseconds until everything durable was applied. */
  settled_ms: number;
  rss_mib: number;
}

/**
 * The one invariant behind every fault: each acknowledged webhook and command is there exactly once and nothing is
 * there that was not sent; per-account order kept; channel numbers dense; counters equal rows; streams without a hole;
 * live rows equal a rebuild's; memory bounded; no error in the log but those that the fault excuses.
 * @throws InvariantBroken with everything that does not hold
 */
export async function checkInvariant(lumio: Lumio, sent: Sent, options: CheckOptions = {}): Promise<Checked> {
  const started = Date.now();
  await settled(lumio, options.settle_ms ?? 30_000);
  const settled_ms = Date.now() - started;
  const broken: string[] = [...sent.violations];
  const { events, broken: of_events } = await checkEvents(lumio, sent);
  const { keys, broken: of_keys } = await checkKeys(lumio, sent);
  const of_channel = await checkChannel(lumio, sent, options.announced ?? (() => true));
  const of_chat = await checkChat(lumio, sent, options.announced ?? (() => true));
  const of_payments = await checkPayments(lumio, sent);
  const of_books = await checkBooks(lumio, options.parked ?? 0);
  broken.push(...of_events, ...of_keys, ...of_channel, ...of_chat, ...of_payments, ...of_books);
  if (options.rebuild ?? true) broken.push(...(await checkRebuild(lumio)));
  const rss_mib = Math.round(residentMiB(lumio.pid));
  if (rss_mib > (options.rss_mib ?? 400)) broken.push(`the process holds ${rss_mib} MiB`);
  broken.push(...checkLog(lumio.printed, options.excused ?? ENGINE_AWAY));
  if (broken.length > 0) throw new InvariantBroken(broken);
  return { events, keys, settled_ms, rss_mib };
}

/**
 * Waits until every declared projection and reactor has applied all that is durable, and no job is due; the time is
 * that of a machine of one's own.
 */
export async function settled(lumio: Lumio, within_ms: number): Promise<void> {
  const caughtUp = async () => {
    const behind = await followersBehind(lumio, lumio.ends_of_logs);
    if (behind.length > 0) throw new Error(`behind: ${behind.join(', ')}`);
    return true;
  };
  await until(caughtUp, 'all that is durable to be applied', within_ms * slowness());
  await sleep(50);
}

/**
 * All read models are rebuilt: what then differs from the live rows. A rebuild that another one keeps waiting is tried
 * again: the server may need a moment to see that a killed rebuild's session is gone.
 */
async function checkRebuild(lumio: Lumio): Promise<string[]> {
  const live = await hashesOf(lumio);
  let done = await lumio.command('rebuild', '--all', '--quiet');
  for (let tries = 0; done.code !== 0 && /already|running/.test(done.stderr) && tries < 60; tries += 1) {
    await sleep(500);
    done = await lumio.command('rebuild', '--all', '--quiet');
  }
  if (done.code !== 0) return [`lumio rebuild --all: code ${done.code} ${done.stderr.slice(-500)}`];
  return compareHashes(live, await hashesOf(lumio));
}
