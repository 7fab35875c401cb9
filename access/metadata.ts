import type { Metadata, StreamWrite } from '../engines/event-store/port';
import type { Caller, RequestContext } from './caller';

/** The event types that these writes append. */
export const typesOf = (writes: readonly StreamWrite[]): string[] =>
  writes.flatMap(({ events }) => events.map(({ type }) => type));

/** Who did it, why, through which credential, and where it came from; flat strings, absent where unknown. Design §5. */
export function metadata(caller: Caller, context: RequestContext): Metadata {
  const facts = {
    // What a client did for a user is told from what they did themselves.
    actor_kind: caller.client ? 'oauth_client' : caller.kind,
    actor_id: caller.user_id,
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
