import type { StoredEvent } from '../engines/event-store/port';
import { catalogue, type AnyEventSet, type EventOf } from './event';
import { assertReadable } from './upcasters';

type Types<Sets extends readonly AnyEventSet[]> = EventOf<Sets[number]>['type'];
type EventNamed<Sets extends readonly AnyEventSet[], Type> = Extract<EventOf<Sets[number]>, { type: Type }>;

/** Process manager as its area declares it: reactions to events. */
export interface ReactorSpec<Sets extends readonly AnyEventSet[], Tools> {
  /** Also the file's name. Its commands are issued in this name, and it is never given to another purpose. */
  name: string;
  /** Which events it reacts to: all that ever were, or those after its installation, which is fixed once. */
  from: 'beginning' | 'now';
  /** The areas whose events it reads. */
  events: Sets;
  /**
   * Reaction to an event of the type; other types are ignored. It runs again after a crash between it and the
   * checkpoint: commands then find their stored events, and rows are written once.
   */
  on: { readonly [Type in Types<Sets>]?: (event: EventNamed<Sets, Type>, tools: Tools) => unknown };
}

/** A process manager as the runtime drives it: by one process of all, event by event, never in a rebuild. */
export interface Reactor<Tools> {
  readonly kind: 'reactor';
  readonly name: string;
  readonly from: 'beginning' | 'now';
  readonly types: readonly string[];
  /** @throws CannotReact for an event that is to be parked at once; anything else is tried again first */
  react(event: StoredEvent, tools: Tools): Promise<void>;
}

const NAME = /^[a-z][a-z0-9-]{0,60}$/;

/**
 * Declares a process manager. Source: design §5.
 * @throws Error when its name is malformed or it reacts to nothing
 */
export function declareReactor<Tools, const Sets extends readonly AnyEventSet[]>(
  spec: ReactorSpec<Sets, Tools>,
): Reactor<Tools> {
  const { name, from } = spec;
  if (!NAME.test(name)) throw new Error(`a reactor's name is of lower-case letters and hyphens, ${name} is not`);
  const on = spec.on as Readonly<Record<string, (event: unknown, tools: Tools) => unknown>>;
  const types = [...catalogue(spec.events).keys()].filter((type) => on[type] !== undefined);
  if (types.length === 0) throw new Error(`the reactor ${name} reacts to nothing`);
  return {
    kind: 'reactor',
    name,
    from,
    types,
    async react(event, tools) {
      assertReadable(event);
      await on[event.type]?.({ ...event.data, type: event.type }, tools);
    },
  };
}

/** A declared data error: nothing can follow from this event, now or later. It is parked for an operator. */
export class CannotReact extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CannotReact';
  }
}
