import type { Revocation } from '../../../access/authentication/revocations';
import { columnsOf } from '../../../kernel/columns';
import {
  catalogue,
  type AnyEventSet,
  type EventCatalogue,
  type EventDeclaration,
  type EventOf,
  type EventSet,
} from '../../../kernel/event';
import type { Enqueued, JobRequest } from '../../../kernel/job';
import { Sql, withQuery } from '../../../kernel/sql';
import type { StoredEvent } from '../../../engines/event-store/port';
import type { Queryable } from '../../../engines/postgres/port';
import type { ApplyMode, ChannelMessage, EventProjection } from '../../../kernel/projection';
import { recordRevocations } from '../outbox/revocations';

type Types<Sets extends readonly AnyEventSet[]> = EventOf<Sets[number]>['type'];
type EventNamed<Sets extends readonly AnyEventSet[], Type> = Extract<EventOf<Sets[number]>, { type: Type }>;

/** Way in which a handler processes several neighbouring events of its type that touch one row. */
export type Handler =
  /** A single statement for events of different streams: the next event of a stream begins another statement. */
  | Sql
  | {
      take: 'each' | 'last' | 'all';
      key: readonly string[];
      statements: readonly Sql[];
    };

/** Begins a new statement where these members repeat. */
export const each = (key: readonly string[], ...statements: Sql[]): Handler => ({ take: 'each', key, statements });
/** Applies only the last of the events with equal values of these members. */
export const lastPer = (key: readonly string[], ...statements: Sql[]): Handler => ({ take: 'last', key, statements });
/**
 * Applies all events in one statement, which gives equal rows however often a row occurs: it inserts missing rows,
 * deletes, or aggregates.
 */
export const all = (...statements: Sql[]): Handler => ({ take: 'all', key: [], statements });

/** The event does not affect these tables. */
export const noEffect: Handler = all();

export interface HandledProjection<Sets extends readonly AnyEventSet[]> {
  /** Also the file's name. */
  name: string;
  version: number;
  tables: readonly string[];
  /** See {@link Projection}. */
  wakes?: string;
  /** See {@link Projection}. */
  rights?: boolean;
  /** Event types that the projection reads: whole areas, or {@link pick}ed types of one. */
  events: Sets;
  /** Handler of each type. Its statement selects from `e`: the events' members as columns of their declared types. */
  on: { readonly [Type in Types<Sets>]: Handler };
  /** Channel messages, stored in the projection's transaction; never in a rebuild or a silent build. */
  messages?: { readonly [Type in Types<Sets>]?: (event: EventNamed<Sets, Type>) => readonly ChannelMessage[] };
  /**
   * Follow-up jobs by name, stored in the projection's transaction; never in a rebuild or a silent build. A job key
   * counts once, so it begins with an id of the event.
   */
  jobs?: { readonly [Type in Types<Sets>]?: JobsOf<EventNamed<Sets, Type>> };
  /**
   * Revocations of cached rights on all nodes; never in a rebuild or a silent build. A statement selects `user_id`,
   * `account_id` or both from `e`, and runs before these events are applied.
   */
  revokes?: { readonly [Type in Types<Sets>]?: ((event: EventNamed<Sets, Type>) => Partial<Revocation>) | Sql };
}

type JobsOf<Event> = Readonly<Record<string, (event: Event) => readonly Enqueued<unknown>[]>>;

/** Selects a few types of an area. */
export function pick<
  Declared extends Readonly<Record<string, EventDeclaration>>,
  const Type extends keyof Declared & string,
>(set: EventSet<Declared>, ...types: readonly Type[]): EventSet<Pick<Declared, Type>> {
  const declared = Object.fromEntries(types.map((type) => [type, set.declared[type]])) as Pick<Declared, Type>;
  return { declared, types };
}

/** Projection with the declarations of the events that it reads. */
export interface DeclaredProjection extends EventProjection {
  declared: EventCatalogue;
}

interface Compiled {
  take: 'each' | 'last' | 'all';
  /** Members that identify a row; a bare statement uses the stream. */
  key: readonly string[];
  keyOf(event: StoredEvent): string;
  statements: readonly string[];
}

/**
 * Projection of domain events with a handler for each type. Neighbouring events of one type are one statement, so that
 * the order between types is kept; a handler declares how it processes several events of one row. Design §7.
 */
export function eventProjection<const Sets extends readonly AnyEventSet[]>(
  spec: HandledProjection<Sets>,
): DeclaredProjection {
  const { name, version, tables, wakes, rights = false } = spec;
  const declared = catalogue(spec.events);
  const handlers = new Map<string, Compiled>();
  for (const [type, declaration] of declared) {
    handlers.set(type, compile(declaration, (spec.on as Readonly<Record<string, Handler>>)[type]!));
  }
  const messages = (spec.messages ?? {}) as Effects<readonly ChannelMessage[]>;
  const jobs = (spec.jobs ?? {}) as Readonly<Record<string, JobsOf<unknown>>>;
  const revokes = Object.entries(spec.revokes ?? {}) as [string, ((event: unknown) => Partial<Revocation>) | Sql][];
  const revoked = Object.fromEntries(revokes.filter(([, one]) => !(one instanceof Sql))) as Effects<
    Partial<Revocation>
  >;
  const revoking = revokes.flatMap(([type, one]) =>
    one instanceof Sql ? [{ type, statement: withQuery('e', recordsetOf(declared.get(type)!), one) }] : [],
  );

  return {
    name,
    version,
    tables,
    ...(wakes !== undefined && { wakes }),
    rights,
    declared,
    revokes: Object.keys(spec.revokes ?? {}),
    jobs: [...new Set(Object.values(jobs).flatMap((by_name) => Object.keys(by_name)))],
    program: JSON.stringify([...handlers].map(([type, { take, key, statements }]) => [type, take, key, statements])),
    from: { kind: 'domain_events', types: [...declared.keys()] },
    async apply(batch, tx, mode: ApplyMode) {
      const notifies = !mode.rebuilding && !mode.silent;
      const found = notifies ? await revocationsOf(batch, revoking, tx) : [];
      for (const part of partsOf(batch, handlers)) await run(part, handlers.get(part[0]!.type)!, tx);
      if (!notifies) return [];
      await recordRevocations(tx, mode, [...found, ...effectsOf(batch, revoked)]);
      const asked = effectsOf(batch, Object.fromEntries(Object.entries(jobs).map(requesting))).flat();
      if (asked.length > 0) await mode.enqueue!(tx, asked);
      return effectsOf(batch, messages).flat();
    },
  };
}

type Effects<T> = Readonly<Record<string, ((event: unknown) => T) | undefined>>;

/** Combines the job requests of a type's events into one function. */
const requesting = ([type, by_name]: [string, JobsOf<unknown>]): [string, (event: unknown) => JobRequest[]] => [
  type,
  (event) => Object.entries(by_name).flatMap(([name, jobs]) => jobs(event).map((one) => ({ ...one, name }))),
];

const effectsOf = <T>(batch: readonly StoredEvent[], effects: Effects<T>): T[] =>
  batch.flatMap(({ type, data }) => {
    const effect = effects[type];
    return effect === undefined ? [] : [effect({ ...data, type })];
  });

async function revocationsOf(
  batch: readonly StoredEvent[],
  revoking: readonly { type: string; statement: string }[],
  tx: Queryable,
): Promise<Partial<Revocation>[]> {
  const found: Partial<Revocation>[] = [];
  for (const { type, statement } of revoking) {
    const data = batch.filter((event) => event.type === type).map((event) => event.data);
    if (data.length > 0) found.push(...((await tx.query(statement, [JSON.stringify(data)])) as Partial<Revocation>[]));
  }
  return found;
}

const recordsetOf = (declaration: EventDeclaration): string =>
  `select * from jsonb_to_recordset($1::jsonb) as e (${columnsOf(declaration)})`;

function compile(declaration: EventDeclaration, handler: Handler): Compiled {
  const text = (statement: Sql) => withQuery('e', recordsetOf(declaration), statement);
  if (handler instanceof Sql)
    return { take: 'each', key: [], keyOf: ({ stream }) => stream, statements: [text(handler)] };
  const { take, key, statements } = handler;
  return {
    take,
    key,
    keyOf: ({ data }) => JSON.stringify(key.map((member) => data[member])),
    statements: statements.map(text),
  };
}

/** Splits a batch into runs of neighbours that one round of statements can process, in order. */
function* partsOf(batch: readonly StoredEvent[], handlers: ReadonlyMap<string, Compiled>): Generator<StoredEvent[]> {
  let part: StoredEvent[] = [];
  let keys = new Set<string>();
  for (const event of batch) {
    const { take, keyOf } = handlers.get(event.type)!;
    const key = take === 'each' ? keyOf(event) : '';
    if (part.length > 0 && (part[0]!.type !== event.type || (take === 'each' && keys.has(key)))) {
      yield part;
      part = [];
      keys = new Set();
    }
    part.push(event);
    keys.add(key);
  }
  if (part.length > 0) yield part;
}

async function run(part: readonly StoredEvent[], { take, keyOf, statements }: Compiled, tx: Queryable): Promise<void> {
  const taken = take === 'last' ? [...new Map(part.map((event) => [keyOf(event), event])).values()] : part;
  const rows = JSON.stringify(taken.map(({ data }) => data));
  for (const statement of statements) await tx.query(statement, [rows]);
}
