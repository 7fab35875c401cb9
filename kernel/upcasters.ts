import type { EventCatalogue } from './event';
import type { JsonObject } from '../lib/json/json';

/**
 * Event types are versioned: the first version of a type carries no mark, every later one `"$v": n` in its stored data.
 * A new version comes with one upcaster in its declaration, which turns the version before into it; chains follow by
 * themselves. Stored events are never rewritten. Design §5.
 */
export interface Upcaster {
  type: string;
  /** The version that it makes, 2 or more, out of the version before. */
  to: number;
  upcast(data: JsonObject): JsonObject;
}

/** Any event with data: a new one, a stored one. */
interface Typed {
  type: string;
  data: JsonObject;
}

export interface Upcasters {
  /**
   * The event as it is stored: marked with the version that this program writes, unless that is the first, or it
   * carries its mark already.
   */
  stamp<E extends Typed>(event: E): E;
  /**
   * The event as this program knows its type. One that it cannot know (a later program's version, a broken upcaster)
   * comes back marked, so that whoever applies it meets {@link assertReadable}. Never throws: a reader must not end by
   * one event.
   */
  read<E extends Typed>(event: E): E;
  /**
   * A stored event as this program would store it: what newer versions leave out, copies leave out too. Sealed members
   * stay sealed.
   */
  renewed<E extends Typed>(event: E): E;
  /**
   * Data without our marks, and the version that it is of, for readers outside. Of an event that this program cannot
   * read: as it was stored.
   */
  unmarked(event: Typed): { version: number; data: JsonObject };
}

const VERSION = '$v';
const UNREADABLE = '$unreadable';

/**
 * The event is of a type or version that this program does not have (`newer`), or its upcaster failed. It waits for a
 * program that can.
 */
export class UnreadableEvent extends Error {
  constructor(
    type: string,
    why: string,
    readonly newer: boolean,
  ) {
    super(`${type}: ${why}`);
    this.name = 'UnreadableEvent';
  }
}

/** The version that an event is stored as. */
export const versionOf = ({ data }: Typed): number => Number(data[VERSION] ?? 1);

/** Why a program cannot read the event, as an event carries it. */
type Unreadable = { why: string; newer: boolean };

/** @throws UnreadableEvent when {@link Upcasters.read} could not bring the event to this program's version */
export function assertReadable(event: Typed): void {
  const unreadable = unreadableOf(event);
  if (unreadable) throw unreadable;
}

/** Error that {@link assertReadable} throws; null for an event that this program can read. */
export function unreadableOf({ type, data }: Typed): UnreadableEvent | null {
  const mark = data[UNREADABLE] as Unreadable | undefined;
  return mark === undefined ? null : new UnreadableEvent(type, mark.why, mark.newer);
}

/** The event marked as of a type that this program does not have. */
export function ofUnknownType<E extends Typed>(event: E): E {
  const why = `stored as version ${versionOf(event)}, this program has no such type`;
  return { ...event, data: { ...event.data, [UNREADABLE]: { why, newer: true } } };
}

/** @throws Error when versions of a type have a gap or a double */
export function createUpcasters(list: readonly Upcaster[]): Upcasters {
  const steps = new Map<string, Upcaster[]>();
  for (const upcaster of [...list].sort((a, b) => a.to - b.to)) {
    const chain = steps.get(upcaster.type) ?? [];
    if (upcaster.to !== chain.length + 2) {
      throw new Error(`upcasters of ${upcaster.type}: version ${upcaster.to} follows ${chain.length + 1}`);
    }
    steps.set(upcaster.type, [...chain, upcaster]);
  }
  const current = (type: string): number => (steps.get(type)?.length ?? 0) + 1;

  const upcasters: Upcasters = {
    stamp(event) {
      const version = current(event.type);
      return version === 1 || event.data[VERSION] !== undefined
        ? event
        : { ...event, data: { ...event.data, [VERSION]: version } };
    },
    read(event) {
      const version = current(event.type);
      if (version === 1 && event.data[VERSION] === undefined && event.data[UNREADABLE] === undefined) return event;
      const { [VERSION]: mark = 1, [UNREADABLE]: _earlier, ...bare } = event.data;
      const unreadable = (why: string, newer: boolean) => ({
        ...event,
        data: { ...bare, [VERSION]: mark, [UNREADABLE]: { why, newer } },
      });
      if (typeof mark !== 'number' || mark < 1 || mark > version) {
        const why = `stored as version ${String(mark)}, this program knows versions up to ${version}`;
        return unreadable(why, Number(mark) > version);
      }
      try {
        const data = (steps.get(event.type) ?? [])
          .slice(mark - 1)
          .reduce<JsonObject>((old, step) => step.upcast(old), bare);
        return { ...event, data };
      } catch (error) {
        return unreadable(`its upcaster failed: ${error instanceof Error ? error.message : String(error)}`, false);
      }
    },
    unmarked(event) {
      const { [VERSION]: mark = current(event.type), [UNREADABLE]: _why, ...data } = event.data;
      return { version: Number(mark), data };
    },
    renewed: (event) => upcasters.stamp(upcasters.read(event)),
  };
  return upcasters;
}

/** The upcasters that areas declare with their events. */
export function upcastersOf(declared: EventCatalogue): Upcaster[] {
  return [...declared].flatMap(([type, { upcast }]) =>
    upcast.map((step, index) => ({ type, to: index + 2, upcast: step })),
  );
}
