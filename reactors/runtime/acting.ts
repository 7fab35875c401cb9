import { actFor, oncePerStep, type Act } from '../../app/write-path/act';
import type { RequestContext } from '../../access/authentication/caller';
import { SERVICE_CALLER, withoutReadYourWrites } from '../../app/service-calls';
import type { RunningJob } from './job-tries';
import type { EventStore, Metadata, StoredEvent } from '../../engines/event-store/port';

/**
 * Runs commands that follow from an event, in a reactor's name: events record the service as their actor and the event
 * as their cause, and their ids derive from its id. The same command twice in one reaction is a programming error.
 */
export function actingFor(reactor: string, event: StoredEvent, events: EventStore, now: number): Act {
  const metadata = metadataOf(reactor, event);
  return actWith(events, reactor, metadata, {
    causation_id: event.id,
    trace: metadata['traceparent'] ?? null,
    now,
    idempotency_seed: `reactor:${reactor}\n${event.id}`,
    seed_since: Date.parse(event.recorded_at),
  });
}

/**
 * Runs commands in a job's name: events record the service as their actor, and their ids derive from the job's key, so
 * that a later try appends nothing again.
 */
export function actingForJob({ name, key, enqueued_at }: RunningJob, events: EventStore, now: number): Act {
  const metadata = { actor_kind: 'service', actor_id: name, correlation_id: key, causation_id: key };
  return actWith(events, name, metadata, {
    causation_id: key,
    trace: null,
    now,
    idempotency_seed: `job:${key}`,
    seed_since: Date.parse(enqueued_at),
  });
}

function actWith(
  events: EventStore,
  service: string,
  metadata: Metadata,
  context: Omit<RequestContext, 'correlation_id' | 'ip'>,
): Act {
  const act = actFor(
    { caller: SERVICE_CALLER, context: { ...context, correlation_id: metadata['correlation_id']!, ip: '' } },
    withoutReadYourWrites(events, () => metadata),
  );
  return oncePerStep(act, service);
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
