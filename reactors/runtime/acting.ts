import { actFor, type Act } from '../../access/act';
import type { RequestContext } from '../../access/caller';
import { SERVICE_CALLER, unattended } from '../../access/service-acts';
import type { EventStore, Metadata, StoredEvent } from '../../engines/event-store/port';

/**
 * Commands that follow from an event, in a reactor's name: events carry the service as their actor and the event as
 * their cause, and their ids derive from its id. The same command asked for twice in one reaction is a bug.
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
  };
  const act = actFor(
    { caller: SERVICE_CALLER, context },
    unattended(events, () => metadata),
  );
  const asked = new Set<string>();
  return (decider, stream, command, options) => {
    const label = JSON.stringify([stream, options?.step]);
    if (asked.has(label)) throw new Error(`${reactor}: two commands on ${stream} in one reaction need a step each`);
    asked.add(label);
    return act(decider, stream, command, options);
  };
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
