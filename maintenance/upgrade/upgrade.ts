import type { Caller, RequestContext } from '../../access/authentication/caller';
import { metadata } from '../../app/write-path/metadata';
import { withoutReadYourWrites } from '../../app/service-calls';
import type { EventStore } from '../../engines/event-store/port';
import type { Database } from '../../engines/postgres/port';
import type { PersonalTexts } from '../../privacy/subject-keys/port';
import { adoptChannelNames } from './channel-name-adoption';
import { adoptFeatureFlags } from './feature-flag-adoption';
import { adoptPlanFlags } from './plan-flag-adoption';
import { seedPlans } from './plan-seeds';
import { seedRoles } from './role-seeds';

/**
 * Steps of every start before anything runs: adopts data that older releases stored elsewhere, and appends an
 * installation's initial data. Each step is repeatable after an interruption and safe in several processes at once.
 */
export async function upgrade(
  { db, events, texts }: { db: Database; events: EventStore; texts: PersonalTexts },
  request: { caller: Caller; context: RequestContext },
): Promise<void> {
  // Does not wait for read models, because none runs yet.
  const services = { db, ...withoutReadYourWrites(events, ({ caller, context }) => metadata(caller, context)) };
  await adoptFeatureFlags(services, request);
  await seedPlans(services, request);
  await adoptPlanFlags(services, request);
  await seedRoles(services, request);
  await adoptChannelNames({ db, texts });
}
