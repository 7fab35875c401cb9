import { v7 } from 'uuid';
import type { EventStore, Metadata } from '../engines/event-store/port';
import { actFor, type Act } from './write-path/act';
import type { Caller, RequestContext } from '../access/authentication/caller';
import type { Services } from './services';

/** Caller of an internal service: without a credential, and not subject to guards. */
export const SERVICE_CALLER: Caller = {
  kind: 'anonymous',
  user_id: null,
  account_id: null,
  credential_id: null,
  permissions: new Set(),
  admin_permissions: new Set(),
  user_permissions: new Set(),
  rate_bucket: 'service',
  rate_limit: null,
  expires_at: null,
};

/** Services for commands without a waiting caller: their commits do not wait for read models. */
export const withoutReadYourWrites = (
  events: EventStore,
  metadataOf: (request: { caller: Caller; context: RequestContext }) => Metadata,
): Pick<Services, 'events' | 'commit' | 'awaitShown'> => ({
  events,
  commit: (request, writes) => events.append(writes, metadataOf(request)),
  awaitShown: async () => undefined,
});

/** Context of an internal service's commands; with a seed, ids of their events derive from it. */
export const serviceContext = (idempotency_seed: string | null = null): RequestContext => ({
  correlation_id: v7(),
  trace: null,
  ip: '',
  now: Date.now(),
  idempotency_seed,
});

/** Runs commands in the name of an internal service, without waiting for read models. */
export function actAsService(service: string, events: EventStore, context = serviceContext()): Act {
  const { correlation_id } = context;
  const metadata = { actor_kind: 'service', actor_id: service, correlation_id, causation_id: correlation_id };
  return actFor(
    { caller: SERVICE_CALLER, context },
    withoutReadYourWrites(events, () => metadata),
  );
}
