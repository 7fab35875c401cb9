import type { Metadata, StreamWrite } from '../../engines/event-store/port';
import { actorOf, type Caller, type RequestContext } from '../../access/authentication/caller';

/** The event types that these writes append. */
export const typesOf = (writes: readonly StreamWrite[]): string[] =>
  writes.flatMap(({ events }) => events.map(({ type }) => type));

/** Metadata of an event: actor, cause, credential and origin; flat strings, absent where unknown. Design §5. */
export function metadata(caller: Caller, context: RequestContext): Metadata {
  const { user_id, acts_for } = actorOf(caller);
  const facts = {
    // Distinguishes the acts of a client from the user's own.
    actor_kind: caller.client ? 'oauth_client' : caller.kind,
    actor_id: user_id,
    acts_for,
    credential_id: caller.credential_id,
    account_id: caller.account_id,
    client_id: caller.client?.client_id ?? null,
    correlation_id: context.correlation_id,
    causation_id: context.causation_id ?? context.correlation_id,
    traceparent: context.trace,
    ip: context.ip || null,
  };
  return Object.fromEntries(Object.entries(facts).filter((entry): entry is [string, string] => entry[1] !== null));
}
