import { RESERVATION_EVENTS } from '../domain/reservations';
import { PROJECTIONS } from './projections';

/** Every event type of this build: those that a read model is made of, and reservations, which have none. */
export const KNOWN_EVENTS: ReadonlySet<string> = new Set([
  ...RESERVATION_EVENTS,
  ...PROJECTIONS.flatMap(({ from }) => (from.kind === 'domain_events' ? from.types : [])),
]);
