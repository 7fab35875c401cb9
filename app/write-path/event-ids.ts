import { v5, v7 } from 'uuid';
import type { NewEvent } from '../../engines/event-store/port';
import type { DomainEvent } from '../../kernel/decider';
import type { JsonObject } from '../../lib/json/json';
import type { RequestContext } from '../../access/authentication/caller';

/** Namespace of ids that derive from an idempotency seed; any fixed UUID does. */
const NAMESPACE = '0d1b5d0e-6a0c-4c38-9d0a-3f4f3c1f6d5a';

/**
 * Id for a new thing: derived from the idempotency seed and `label` when there is a seed, so that a retry produces the
 * same id; else a UUIDv7.
 */
export function newId(context: Pick<RequestContext, 'idempotency_seed'>, label: string): string {
  return context.idempotency_seed === null ? v7() : v5(`${context.idempotency_seed}\n${label}`, NAMESPACE);
}

/**
 * Converts domain events for the store; `type` moves next to the data, ids as in {@link newId}. `label` names the
 * stream.
 */
export function newEvents(
  context: Pick<RequestContext, 'idempotency_seed'>,
  label: string,
  events: readonly DomainEvent[],
): NewEvent[] {
  return events.map(({ type, ...data }, index) => ({
    id: newId(context, `${label}\n${index}`),
    type,
    data: data as unknown as JsonObject,
  }));
}
