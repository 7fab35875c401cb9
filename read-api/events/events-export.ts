import { v7 } from 'uuid';
import type { z } from 'zod';
import { feature, get, invalid, ndjson, permission, query, rateLimited } from '../../app/operation';
import { EVENT_COLUMNS, EventRecord, eventRecord, eventRow, type EventRow } from '../../domain/events/events';
import type { Queryable } from '../../engines/postgres/port';
import { DomainError } from '../../kernel/errors';
import { Parameters } from '../../kernel/sql';
import { eventQuery, EventFilterInput, fromQueryString } from './events';
import { type EventQuery, pairConditions } from './events-pages';

/** Rows per read; no database resource is held in between. */
const ROWS = 500;
/** Time after its last read in which an export counts as running; the claim of a process that has died ends so. */
const CLAIM = "interval '2 minutes'";

type Exported = Omit<EventQuery, 'limit' | 'offset' | 'max_bytes'>;

/**
 * The account's events from the read model, so that retention and erasures count; pages by place, never by offset. The
 * result has no bound, and the reader sets its pace.
 */
export const exportEvents = query({
  name: 'exportEvents',
  summary: "The account's platform events as NDJSON, or as CSV by `Accept: text/csv`, oldest first",
  rest: get('/v1/events/export', { mapInput: fromQueryString }),
  graphql: null,
  sends: ndjson({ csv: true }),
  per_minute: 10,
  guard: [feature('feature:events'), permission('events:read')],
  input: EventFilterInput.omit({ search: true }).meta({ id: 'EventExportInput' }),
  output: EventRecord,
  errors: {
    ENDS_BEFORE_IT_BEGINS: invalid('from must not be after to'),
    EXPORT_RUNNING: rateLimited('Another export of the account is running', { retry_after_seconds: 30 }),
  },
  async run({ input, caller, refuse }, { db }) {
    return begun(exported(db, eventQuery(input, caller.account_id, refuse)));
  },
});

/** Reads the first item, so that a refusal is the operation's; whoever ends the result ends the generator. */
async function begun<Item>(items: AsyncGenerator<Item, void, undefined>): Promise<AsyncIterable<Item>> {
  let first: IteratorResult<Item> | null = await items.next();
  const iterator = {
    next: async () => {
      const next = first ?? (await items.next());
      first = null;
      return next;
    },
    return: () => items.return(),
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

/** @throws DomainError EXPORT_RUNNING before the first event */
async function* exported(db: Queryable, of: Exported): AsyncGenerator<z.input<typeof EventRecord>> {
  const { account_id } = of;
  const token = v7();
  await claim(db, account_id, token);
  try {
    let after: EventRow | null = null;
    for (;;) {
      const rows = await eventsAfter(db, of, after);
      if (after !== null) await claim(db, account_id, token);
      for (const row of rows) yield eventRecord(eventRow(row));
      after = rows.at(-1) ?? null;
      if (rows.length < ROWS) return;
    }
  } finally {
    await db.query('delete from running_exports where account_id = $1 and token = $2', [account_id, token]);
  }
}

/**
 * Claims the account's one export, or extends the claim.
 * @throws DomainError EXPORT_RUNNING while another export has it
 */
async function claim(db: Queryable, account_id: string, token: string): Promise<void> {
  const claimed = await db.query(
    `insert into running_exports as r (account_id, token, ends_at) values ($1, $2, now() + ${CLAIM})
     on conflict (account_id) do update set token = excluded.token, ends_at = excluded.ends_at
       where r.token = excluded.token or r.ends_at <= now()
     returning 1 as one`,
    [account_id, token],
    'claim-export',
  );
  if (claimed.length === 0) throw new DomainError('EXPORT_RUNNING');
}

function eventsAfter(db: Queryable, of: Exported, after: EventRow | null): Promise<EventRow[]> {
  const p = new Parameters();
  const wanted = [`account_id = ${p.add(of.account_id)}`];
  if (of.user_id !== null) wanted.push(`user_id = ${p.add(of.user_id)}`);
  if (of.from !== null) wanted.push(`created_at >= ${p.add(of.from)}::timestamptz`);
  if (of.to !== null) wanted.push(`created_at < ${p.add(of.to)}::timestamptz`);
  if (after !== null)
    wanted.push(`(created_at, id) > (${p.add(after.created_at)}::timestamptz, ${p.add(after.id)}::uuid)`);
  return db.query<EventRow>(
    `select ${EVENT_COLUMNS} from platform_event_logs where ${wanted.join(' and ')}${pairConditions(of, p).sql}
     order by created_at, id limit ${ROWS}`,
    p.values,
  );
}
