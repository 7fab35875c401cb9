import { actFor, oncePerStep, type Act } from '../../app/write-path/act';
import type { RequestContext } from '../../access/authentication/caller';
import { SERVICE_CALLER, withoutReadYourWrites } from '../../app/service-calls';
import type { EventStore, Metadata, StoredEvent } from '../../engines/event-store/port';

/**
 * Runs commands that follow from an event, in a reactor's name: events record the service as their actor and the event
 * as their cause, and their ids derive from its id. The same command twice in one reaction is a programming error.
 */
export function actingFor(reactor: string, event: StoredEvent, events: EventStore, now: number): Act {
  const metadata = metadataOf(reactor, event);
  const context: RequestContext = {
    correlation_id: metadata['correlation_id']!,
    causation_id: event.id,
    trace: metadata['traceparent'] ?? null,
    ip: '',
    now,
    idempotency_seed: `reactor:${reactor}\n${event.id}`,
    seed_since: Date.parse(event.recorded_at),
  };
  const act = actFor(
    { caller: SERVICE_CALLER, context },
    withoutReadYourWrites(events, () => metadata),
  );
  return oncePerStep(act, reactor);
}

function metadataOf(reactor: string, { id, metadata }: StoredEvent): Metadata {
  return {
    actor_kind: 'service',
    actor_id: reactor,
    correlation_id: metadata['correlation_id'] ?? id,
    causation_id: id,
    ...(metadata['traceparent'] !== undefined && { traceparent: metadata['traceparent'] }),
  };
}
