import type { Excuse } from '../../support/printed';
import { slowness } from '../../support/patience';
import { sleep, until } from './dose';
import { ENGINE_AWAY } from './excuses';
import type { Lumio } from './lumio';
import { checkBooks, checkChannel, checkEvents, checkKeys, checkLog } from './oracles';
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
  /** Read models that are rebuilt and compared with the live rows. Default: event-log and api-keys. */
  rebuild?: readonly string[];
  /** Longest time until everything durable is applied, see {@link settled}. Default 30 s, as faults promise. */
  settle_ms?: number;
  /** Default 700: the process at rest has about 150. */
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

const TABLES: Record<string, Record<string, string>> = {
  'event-log': { platform_event_logs: 'id', event_log_counters: 'account_id, type, platform, day' },
  'api-keys': { api_keys: 'id' },
};

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
  const of_books = await checkBooks(lumio, options.parked ?? 0);
  broken.push(...of_events, ...of_keys, ...of_channel, ...of_books);
  for (const name of options.rebuild ?? ['event-log', 'api-keys']) await checkRebuild(lumio, name, broken);
  const rss_mib = Math.round(residentMiB(lumio.pid));
  if (rss_mib > (options.rss_mib ?? 700)) broken.push(`the process holds ${rss_mib} MiB`);
  broken.push(...checkLog(lumio.printed, options.excused ?? ENGINE_AWAY));
  if (broken.length > 0) throw new InvariantBroken(broken);
  return { events, keys, settled_ms, rss_mib };
}

/** Waits until every projection has applied all that is durable; the time is that of a machine of one's own. */
export async function settled(lumio: Lumio, within_ms: number): Promise<void> {
  const { ends_of_logs } = lumio;
  const applied = async () => {
    const ends = await ends_of_logs.records();
    const checkpoints = await lumio.query(
      `select projection, partition, position from checkpoints
       where source = 'platform-events' and projection = 'event-log' or projection in ('api-keys', 'users', 'accounts')`,
    );
    const records = new Map<number, number>();
    const domain = new Set(checkpoints.map(({ projection }) => projection as string));
    if (!['api-keys', 'users', 'accounts'].every((name) => domain.has(name))) return false;
    for (const { projection, partition, position } of checkpoints) {
      if (projection === 'event-log') records.set(partition, Number(position));
      else if (!(await ends_of_logs.reached(position))) return false;
    }
    return [...ends].every(([partition, next]) => next <= (records.get(partition) ?? 0));
  };
  await until(applied, 'all that is durable to be applied', within_ms * slowness());
  await sleep(50);
}

/** Rows of a read model as one hash for each table. */
export async function hashOf(lumio: Lumio, name: string): Promise<string> {
  const parts: string[] = [];
  for (const [table, order] of Object.entries(TABLES[name]!)) {
    const [row] = await lumio.query(
      `select count(*) || '/' || coalesce(md5(string_agg(md5(t::text), '' order by ${order})), '') as hash from ${table} t`,
    );
    parts.push(`${table} ${row.hash}`);
  }
  return parts.join(', ');
}

async function checkRebuild(lumio: Lumio, name: string, broken: string[]): Promise<void> {
  const live = await hashOf(lumio, name);
  let done = await lumio.command('rebuild', name, '--quiet');
  // The server may need a moment to see that a killed rebuild's session is gone.
  for (let tries = 0; done.code !== 0 && /already|running/.test(done.stderr) && tries < 60; tries += 1) {
    await sleep(500);
    done = await lumio.command('rebuild', name, '--quiet');
  }
  if (done.code !== 0) {
    broken.push(`lumio rebuild ${name}: code ${done.code} ${done.stderr.slice(-500)}`);
    return;
  }
  const rebuilt = await hashOf(lumio, name);
  if (rebuilt !== live) broken.push(`${name}: live ${live}, rebuilt ${rebuilt}`);
}
