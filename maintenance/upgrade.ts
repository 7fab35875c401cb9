import type { Caller, RequestContext } from '../access/caller';
import { metadata } from '../access/metadata';
import { unattended } from '../access/service-acts';
import type { EventStore } from '../engines/event-store/port';
import type { Database } from '../engines/postgres/port';
import type { PersonalTexts } from '../engines/subject-keys/port';
import { adoptChannelNames } from './channel-name-adoption';
import { adoptFeatureFlags } from './feature-flag-adoption';
import { seedPlans } from './plan-seeds';
import { seedRoles } from './role-seeds';

/**
 * What every start does before anything runs: takes over what builds before this one kept elsewhere, and appends what
 * an installation begins with. Each part bears being cut off, and being done by several processes at once.
 */
export async function upgrade(
  { db, events, texts }: { db: Database; events: EventStore; texts: PersonalTexts },
  request: { caller: Caller; context: RequestContext },
): Promise<void> {
  // No read model is waited for: none of them runs yet.
  const services = { db, ...unattended(events, ({ caller, context }) => metadata(caller, context)) };
  await adoptFeatureFlags(services, request);
  await seedPlans(services, request);
  await seedRoles(services, request);
  await adoptChannelNames({ db, texts });
}
