import { changesByStream, reservation, type ReservationCommand } from '../domain/reservations';
import type { EventStore, StreamWrite } from '../engines/event-store/port';
import type { RequestContext } from './caller';
import { newEvents } from './event-ids';
import { statesOf } from './states';

/**
 * What reserved values change, one write per value; none for a value that stays whose it is. Each names the revision
 * that it was decided on, so that of several who take a value at once one gets it.
 * @throws Taken when another owner holds a value
 */
export async function reservationWrites(
  context: RequestContext,
  events: EventStore,
  commands: readonly ReservationCommand[],
): Promise<StreamWrite[]> {
  const writes: StreamWrite[] = [];
  for (const [stream, change] of changesByStream(commands)) {
    const { state, revision } = await statesOf(events).load(reservation, stream);
    const decided = reservation.decide(state, change);
    if (decided.length === 0) continue;
    const expected = revision === -1 ? 'none' : revision;
    writes.push({ stream, expected, events: newEvents(context, stream, decided) });
  }
  return writes;
}
