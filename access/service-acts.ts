import { v7 } from 'uuid';
import type { EventStore } from '../engines/event-store/port';
import { actFor, type Act } from './act';
import type { Caller } from './caller';

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

/** Commands that follow from what a vendor said, in the name of the service that heard it; nobody waits for them. */
export function actingAs(service: string, events: EventStore): Act {
  const correlation_id = v7();
  const metadata = { actor_kind: 'service', actor_id: service, correlation_id, causation_id: correlation_id };
  return actFor(
    {
      caller: SERVICE_CALLER,
      context: { correlation_id, trace: null, ip: '', now: Date.now(), idempotency_seed: null },
    },
    { events, commit: (_request, writes) => events.append(writes, metadata), settle: async () => undefined },
  );
}
