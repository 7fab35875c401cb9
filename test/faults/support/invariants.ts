import type { Lumio } from './lumio';
import { sleep, until } from './dose';
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
  /** Longest time until everything durable is applied. Default 30 s (faults: back to normal within 30 s). */
  settle_ms?: number;
  /** Default 700: the process at rest has about 150. */
  rss_mib?: number;
  /** Dead letters that the test made on purpose. */
  parked?: number;
  /** Whether an event must be on the channel as long as that begins at 1. Default: all; a restored installation announces only what came since. */
  announced?: (id: string) => boolean;
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
 * The one invariant behind every fault: each acknowledged webhook and command is there exactly once and nothing is there that was not
 * sent; per-account order kept; channel numbers dense; counters equal rows; streams without a hole; live rows equal a rebuild's; memory bounded.
 * @throws InvariantBroken with everything that does not hold
 */
export async function checkInvariant(lumio: Lumio, sent: Sent, options: CheckOptions = {}): Promise<Checked> {
  const started = Date.now();
  await settled(lumio, options.settle_ms ?? 30_000);
  const settled_ms = Date.now() - started;
  const broken: string[] = [...sent.violations];
  const events = await checkEvents(lumio, sent, broken);
  await checkChannel(lumio, sent, options.announced ?? (() => true), broken);
  const keys = await checkKeys(lumio, sent, broken);
  await checkBooks(lumio, options.parked ?? 0, broken);
  for (const name of options.rebuild ?? ['event-log', 'api-keys']) await checkRebuild(lumio, name, broken);
  const rss_mib = Math.round(residentMiB(lumio.pid));
  if (rss_mib > (options.rss_mib ?? 700)) broken.push(`the process holds ${rss_mib} MiB`);
  if (broken.length > 0) throw new InvariantBroken(broken);
  return { events, keys, settled_ms, rss_mib };
}

/** Waits until every projection has applied all that is durable. */
export async function settled(lumio: Lumio, within_ms: number): Promise<void> {
  const { ends_of_logs } = lumio;
  const applied = async () => {
    const ends = await ends_of_logs.records();
    const checkpoints = await lumio.query(
      `select projection, partition, position from checkpoints
       where source = 'platform-events' and projection = 'event-log' or projection in ('api-keys', 'users', 'accounts')`,
    );
    const records = new Map<number, number>();
    for (const { projection, partition, position } of checkpoints) {
      if (projection === 'event-log') records.set(partition, Number(position));
      else if (!(await ends_of_logs.reached(position))) return false;
    }
    return [...ends].every(([partition, next]) => next <= (records.get(partition) ?? 0));
  };
  await until(applied, 'all that is durable to be applied', within_ms);
  await sleep(50);
}

async function checkEvents(lumio: Lumio, sent: Sent, broken: string[]): Promise<number> {
  const { account_id } = lumio.credentials;
  const rows = await lumio.query('select external_id from platform_event_logs where account_id = $1', [account_id]);
  const seen = new Map<string, number>();
  for (const { external_id } of rows) {
    const id = String(external_id).replace(/^trovo:/, '');
    seen.set(id, (seen.get(id) ?? 0) + 1);
  }
  const acked = [...sent.lanes.values()].flat();
  const lost = acked.filter((id) => !seen.has(id));
  const doubled = [...seen].filter(([, count]) => count > 1).map(([id]) => id);
  const strange = [...seen.keys()].filter((id) => !sent.tried.has(id));
  if (lost.length > 0) broken.push(`${lost.length} of ${acked.length} acknowledged events lost: ${lost.slice(0, 5)}`);
  if (doubled.length > 0) broken.push(`${doubled.length} events applied twice: ${doubled.slice(0, 5)}`);
  if (strange.length > 0) broken.push(`${strange.length} events that nobody sent: ${strange.slice(0, 5)}`);
  return rows.length;
}

/** The channel: numbered without a hole, once for each event, and each lane's events in the order in which they were acknowledged. */
async function checkChannel(
  lumio: Lumio,
  sent: Sent,
  announced: (id: string) => boolean,
  broken: string[],
): Promise<void> {
  const channel = `events:${lumio.credentials.account_id}`;
  const rows = await lumio.query(
    `select seq::int as seq, data::json->>'external_id' as external_id from outbox where channel = $1 order by id`,
    [channel],
  );
  const hole = rows.findIndex((row, at) => at > 0 && row.seq !== rows[at - 1].seq + 1);
  if (hole > 0) broken.push(`channel ${channel}: ${rows[hole].seq} follows ${rows[hole - 1].seq}`);
  const place = new Map<string, number>();
  for (const { seq, external_id } of rows) {
    const id = String(external_id).replace(/^trovo:/, '');
    if (place.has(id)) broken.push(`${id} was announced twice`);
    place.set(id, seq);
  }
  for (const [lane, ids] of sent.lanes) {
    const places = ids.map((id) => place.get(id)).filter((seq) => seq !== undefined);
    const whole = rows.length > 0 && rows[0].seq === 1;
    const missing = whole ? ids.filter((id) => announced(id) && !place.has(id)) : [];
    if (missing.length > 0)
      broken.push(`${lane}: ${missing.length} events were never announced: ${missing.slice(0, 5)}`);
    const turned = places.findIndex((seq, at) => at > 0 && seq <= places[at - 1]!);
    if (turned > 0) broken.push(`${lane}: order broken at ${ids[turned]}`);
  }
}

async function checkKeys(lumio: Lumio, { keys }: Sent, broken: string[]): Promise<number> {
  const rows = await lumio.query('select label, count(*)::int as count from api_keys where label like $1 group by 1', [
    '%-k%-%',
  ]);
  const seen = new Map(rows.map((row) => [row.label as string, row.count as number]));
  for (const label of keys.acked) if (!seen.has(label)) broken.push(`acknowledged key ${label} lost`);
  for (const [label, count] of seen) {
    if (count > 1) broken.push(`key ${label} made ${count} times`);
    if (!keys.tried.has(label)) broken.push(`key ${label} was never asked for`);
  }
  return rows.length;
}

/** What the database must agree on with itself. */
async function checkBooks(lumio: Lumio, parked: number, broken: string[]): Promise<void> {
  const books: Record<string, string> = {
    'counters differ from rows': `
      select * from (select account_id, type, platform, (created_at at time zone 'UTC')::date as day, count(*) as n
        from platform_event_logs group by 1, 2, 3, 4) l
      full join event_log_counters c using (account_id, type, platform, day) where n is distinct from c.count`,
    'ledger differs from rows': `
      select * from (select id, external_id from platform_event_logs where external_id is not null) e
      full join ingested_ids l on l.record_id = e.id where e.id is null or l.record_id is null`,
    'a stream has a hole or a double': `
      select stream from domain_events group by stream having count(*) <> max(revision) + 1 or min(revision) <> 0`,
    'one event id in two places': 'select id from domain_events group by id having count(*) > 1',
    'a channel head is not its newest message': `
      select h.channel from channel_heads h join (select channel, max(seq) as seq from outbox group by 1) o using (channel) where h.seq <> o.seq`,
    'a session is left in a transaction': `
      select pid from pg_stat_activity where datname = current_database() and application_name like 'lumio %'
        and state like 'idle in transaction%' and xact_start < clock_timestamp() - interval '45 s'`,
  };
  for (const [what, sql] of Object.entries(books)) {
    const rows = await lumio.query(sql);
    if (rows.length > 0) broken.push(`${what}: ${JSON.stringify(rows.slice(0, 3))} (${rows.length})`);
  }
  const [letters] = await lumio.query(`select count(*)::int as count from dead_letters where status = 'parked'`);
  if (letters.count !== parked) broken.push(`${letters.count} dead letters, expected ${parked}`);
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
  for (let tries = 0; done.code !== 0 && /already|running/.test(done.stderr) && tries < 20; tries += 1) {
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
