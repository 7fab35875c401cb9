import { accounts } from '../projections/accounts';
import { apiKeys } from '../projections/api-keys';
import { connections } from '../projections/connections';
import { eventLog } from '../projections/event-log';
import type { Projection } from '../projections/projection';
import { streamSamples } from '../projections/stream-samples';
import { systemKeys } from '../projections/system-keys';
import { users } from '../projections/users';

/** Every projection of Lumio; a new area adds its own here. */
export const PROJECTIONS: readonly Projection[] = [
  // who there is
  users,
  accounts,
  connections,
  apiKeys,
  systemKeys,
  // what happened
  eventLog,
  streamSamples,
];
