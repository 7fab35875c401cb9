import type { Decider, DomainEvent } from '../kernel/decider';
import type { Caller, RequestContext } from './caller';
import { handle, type Handled, type Handling } from './handle';
import type { Services } from './services';

/** What a command may say beside itself. */
export type ActOptions<State, Command, Event extends DomainEvent> = Omit<
  Handling<State, Command, Event>,
  'decider' | 'stream' | 'command'
>;

/**
 * Decides a command on a stream on behalf of the request's caller, and waits for the read models that read what came of
 * it. Reads the stream once: what must hold of its state beforehand is `given`.
 * @throws DomainError of `decide`, whatever `given` throws, Taken, RevisionConflict
 */
export type Act = <State, Command, Event extends DomainEvent>(
  decider: Decider<State, Command, Event>,
  stream: string,
  command: Command,
  options?: ActOptions<State, Command, Event>,
) => Promise<Handled<State, Event>>;

/** {@link Act} for one request. */
export const actFor =
  (
    request: { caller: Caller; context: RequestContext },
    services: Pick<Services, 'events' | 'commit' | 'settle'>,
  ): Act =>
  (decider, stream, command, options) =>
    handle(request, services, { ...options, decider, stream, command });
