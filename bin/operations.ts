import type { Operation } from '../access/operation';
import { operations as apiKeyCommands } from '../commands/api-keys';
import { operations as authCommands } from '../commands/auth';
import { operations as eventCommands } from '../commands/events';
import { operations as apiKeyQueries } from '../read-api/api-keys';
import { operations as eventQueries } from '../read-api/events';
import { operations as tokenQueries } from '../read-api/tokens';

/** Every operation of Lumio; a new area adds its lists here. */
export const OPERATIONS: readonly Operation[] = [
  ...eventQueries,
  ...eventCommands,
  ...apiKeyQueries,
  ...apiKeyCommands,
  ...tokenQueries,
  ...authCommands,
];
