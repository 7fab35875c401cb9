import { v7 } from 'uuid';
import type { EventStore, Metadata } from '../engines/event-store/port';
import { actFor, type Act } from './act';
import type { Caller, RequestContext } from './caller';
import type { Services } from './services';

/** A service of our own: it holds no credential, and no guard is asked about it. */
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

/** What commands append with where nobody waits for their answers, and so for no read model. */
export const unattended = (
  events: EventStore,
  metadataOf: (request: { caller: Caller; context: RequestContext }) => Metadata,
): Pick<Services, 'events' | 'commit' | 'awaitShown'> => ({
  events,
  commit: (request, writes) => events.append(writes, metadataOf(request)),
  awaitShown: async () => undefined,
});

/** Commands that follow from what a vendor said, in the name of the service that heard it; nobody waits for them. */
export function actingAs(service: string, events: EventStore): Act {
  const correlation_id = v7();
  const metadata = { actor_kind: 'service', actor_id: service, correlation_id, causation_id: correlation_id };
  return actFor(
    {
      caller: SERVICE_CALLER,
      context: { correlation_id, trace: null, ip: '', now: Date.now(), idempotency_seed: null },
    },
    unattended(events, () => metadata),
  );
}
