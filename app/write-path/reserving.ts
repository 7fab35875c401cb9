import { changesByStream, reservation, type ReservationCommand } from '../../domain/common/reservations';
import type { EventStore, StreamWrite } from '../../engines/event-store/port';
import type { RequestContext } from '../../access/authentication/caller';
import { newEvents } from './event-ids';
import { aggregateCacheOf } from './aggregate-cache';

/**
 * Writes for changed reservations, one per value; none for a value that keeps its owner. Each expects the revision that
 * was read, so that one of several concurrent owners wins.
 * @throws Taken when another owner holds a value
 */
export async function reservationWrites(
  context: RequestContext,
  events: EventStore,
  commands: readonly ReservationCommand[],
): Promise<StreamWrite[]> {
  const writes: StreamWrite[] = [];
  for (const [stream, change] of changesByStream(commands)) {
    const { state, revision } = await aggregateCacheOf(events).load(reservation, stream);
    const decided = reservation.decide(state, change);
    if (decided.length === 0) continue;
    const expected = revision === -1 ? 'none' : revision;
    writes.push({ stream, expected, events: newEvents(context, stream, decided) });
  }
  return writes;
}
