import type { Excuse, Printed } from '../../support/printed';
import type { Lumio } from './lumio';
import type { Sent } from './traffic';

/** A database under test, and who is looked at in it. */
export type Observed = Pick<Lumio, 'query'> & { credentials: { account_id: string } };

/** What a client was promised about a set of ids, and what is there of it. Each violation is one sentence. */
export function compareIds(stored: readonly string[], acked: Iterable<string>, tried: ReadonlySet<string>): string[] {
  const seen = new Map<string, number>();
  for (const id of stored) seen.set(id, (seen.get(id) ?? 0) + 1);
  const lost = [...acked].filter((id) => !seen.has(id));
  const doubled = [...seen].filter(([, count]) => count > 1).map(([id]) => id);
  const strange = [...seen.keys()].filter((id) => !tried.has(id));
  return [
    ...told(lost, 'acknowledged events lost'),
    ...told(doubled, 'events applied twice'),
    ...told(strange, 'events that nobody sent'),
  ];
}

const told = (ids: readonly string[], what: string): string[] =>
  ids.length > 0 ? [`${ids.length} ${what}: ${ids.slice(0, 5).join(', ')}`] : [];

/** Every acknowledged event is there once, every other one at most once, and nothing that was not sent. */
export async function checkEvents(on: Observed, sent: Sent): Promise<{ events: number; broken: string[] }> {
  const rows = await on.query('select external_id from platform_event_logs where account_id = $1', [
    on.credentials.account_id,
  ]);
  const stored = rows.map(({ external_id }) => idOf(external_id));
  return { events: rows.length, broken: compareIds(stored, [...sent.lanes.values()].flat(), sent.tried) };
}

/**
 * The channel: numbered without a hole, once for each event that is promised on it, and each lane's events in the order
 * of their acknowledgement. Of what the outbox has trimmed only the number is known, and that it was the oldest.
 */
export async function checkChannel(on: Observed, sent: Sent, announced: (id: string) => boolean): Promise<string[]> {
  const channel = `events:${on.credentials.account_id}`;
  const rows: { seq: number; external_id: string | null }[] = await on.query(
    `select seq::int as seq, data::json->>'external_id' as external_id from outbox where channel = $1 order by id`,
    [channel],
  );
  const [head] = await on.query('select seq::int as seq from channel_heads where channel = $1', [channel]);
  const newest: number = head?.seq ?? 0;
  const broken: string[] = [];
  rows.forEach(({ seq }, at) => {
    if (at > 0 && seq !== rows[at - 1]!.seq + 1) broken.push(`channel ${channel}: ${seq} follows ${rows[at - 1]!.seq}`);
  });
  if (rows.length > 0 && rows.at(-1)!.seq !== newest)
    broken.push(`channel ${channel}: its head is ${newest}, its newest message ${rows.at(-1)!.seq}`);
  const place = new Map<string, number>();
  for (const { seq, external_id } of rows) {
    const id = idOf(external_id);
    if (place.has(id)) broken.push(`${id} was announced twice`);
    if (!sent.tried.has(id)) broken.push(`${id} was announced, and nobody sent it`);
    place.set(id, seq);
  }
  let trimmed = (rows[0]?.seq ?? newest + 1) - 1;
  for (const [lane, ids] of sent.lanes) {
    const promised = ids.filter(announced);
    const first = promised.findIndex((id) => place.has(id));
    const old = first < 0 ? promised.length : first;
    const missing = promised.filter((id, at) => !place.has(id) && (at >= old || (trimmed -= 1) < 0));
    broken.push(...told(missing, `events of ${lane} were never announced`));
    const places = ids.flatMap((id) => (place.has(id) ? [{ id, seq: place.get(id)! }] : []));
    const turned = places.find(({ seq }, at) => at > 0 && seq <= places[at - 1]!.seq);
    if (turned) broken.push(`${lane}: order broken at ${turned.id}`);
  }
  return broken;
}

/** API keys by their labels: the acknowledged once, the others at most once. */
export async function checkKeys(on: Observed, { keys }: Sent): Promise<{ keys: number; broken: string[] }> {
  const rows = await on.query(
    `select label, count(*)::int as count from api_keys where label like '%-k%-%' group by 1`,
  );
  const seen = new Map<string, number>(rows.map(({ label, count }) => [label, count]));
  const broken = [...keys.acked].filter((label) => !seen.has(label)).map((label) => `acknowledged key ${label} lost`);
  for (const [label, count] of seen) {
    if (count > 1) broken.push(`key ${label} made ${count} times`);
    if (!keys.tried.has(label)) broken.push(`key ${label} was never asked for`);
  }
  return { keys: rows.length, broken };
}

/** Payments by the ids of their objects, as vendors' deliveries are compared. */
export async function checkPayments(on: Pick<Observed, 'query'>, { payments }: Sent): Promise<string[]> {
  const rows = await on.query(`select object_id from payment_objects where object_id like '%-p%-%'`);
  return compareIds(
    rows.map(({ object_id }) => object_id as string),
    payments.acked,
    payments.tried,
  ).map((what) => `payments: ${what}`);
}

/**
 * The channel of the chat, which is all that is kept of it: each message announced at most once, in the order of the
 * acknowledgements, none that was not sent, and every acknowledged one unless the outbox has trimmed it.
 */
export async function checkChat(on: Observed, { chat }: Sent, announced: (id: string) => boolean): Promise<string[]> {
  const channel = `chat:${on.credentials.account_id}`;
  const rows: { seq: number; message_id: string | null }[] = await on.query(
    `select seq::int as seq, data::json->>'platform_message_id' as message_id
     from outbox where channel = $1 order by id`,
    [channel],
  );
  const ids = rows.flatMap(({ message_id }) => message_id ?? []);
  const trimmed = (rows[0]?.seq ?? Number.MAX_SAFE_INTEGER) - 1;
  const promised = [...chat.acked].filter(announced);
  const missing = promised.filter((id) => !ids.includes(id));
  const broken = compareIds(ids, [], chat.tried);
  if (rows.length > 0 && missing.length > trimmed) broken.push(...told(missing, 'messages were never announced'));
  if (rows.length === 0 && promised.length > 0) broken.push(...told(promised, 'messages were never announced'));
  const places = promised.map((id) => ids.indexOf(id)).filter((place) => place >= 0);
  const turned = places.findIndex((place, at) => at > 0 && place < places[at - 1]!);
  if (turned >= 0) broken.push(`order broken at ${ids[places[turned]!]}`);
  return broken.map((what) => `chat: ${what}`);
}

/** What the database must agree on with itself; each statement finds what does not. */
export const BOOKS = {
  'counters differ from rows': `
    select * from (select account_id, type, platform, (created_at at time zone 'UTC')::date as day, count(*) as n
      from platform_event_logs group by 1, 2, 3, 4) l
    full join event_log_counters c using (account_id, type, platform, day) where n is distinct from c.count`,
  'ledger differs from rows': `
    select * from (select id, external_id from platform_event_logs where external_id is not null) e
    full join (select * from ledger where projection = 'event-log') l on l.record_id = e.id where e.id is null or l.record_id is null`,
  'a stream has a hole or a double': `
    select stream from domain_events group by stream having count(*) <> max(revision) + 1 or min(revision) <> 0`,
  'one event id in two places': 'select id from domain_events group by id having count(*) > 1',
  'a channel head is not its newest message': `
    select h.channel from channel_heads h join (select channel, max(seq) as seq from outbox group by 1) o using (channel)
    where h.seq <> o.seq`,
  'a channel has messages and no head': 'select channel from outbox except select channel from channel_heads',
  'a session is left in a transaction': `
    select pid from pg_stat_activity where datname = current_database() and application_name like 'lumio %'
      and state like 'idle in transaction%' and xact_start < clock_timestamp() - make_interval(secs => $1)`,
} as const;

/** @param idle_s how long a session of the server may stay in one transaction without a statement */
export async function checkBooks(on: Pick<Observed, 'query'>, parked: number, idle_s = 45): Promise<string[]> {
  const broken: string[] = [];
  for (const [what, sql] of Object.entries(BOOKS)) {
    const rows = await on.query(sql, sql.includes('$1') ? [idle_s] : []);
    if (rows.length > 0) broken.push(`${what}: ${JSON.stringify(rows.slice(0, 3))} (${rows.length})`);
  }
  const [letters] = await on.query(`select count(*)::int as count from dead_letters where status = 'parked'`);
  if (letters.count !== parked) broken.push(`${letters.count} dead letters, expected ${parked}`);
  return broken;
}

/** Errors in the log that no excuse covers: each message with its reason once, with its number. */
export const checkLog = (printed: Printed, excused: readonly Excuse[]): string[] =>
  printed
    .unexcused(excused)
    .map(
      ({ message, reason, count }) =>
        `logged ${count} times: "${message.slice(0, 300)}" because of ${reason.slice(0, 300)}`,
    );

const idOf = (external_id: string | null): string => String(external_id).replace(/^trovo:/, '');
