import type pg from 'pg';
import { fedEventStore } from './feed';
import type { EventStore } from './port';
import { createPostgresEventStore } from './postgres';
import type { Logger } from '../log/port';
import type { Wakeups } from '../wakeups/port';
import { SettingsError } from '../../kernel/settings-error';

export interface EventStoreDeps {
  /** `event_store.url` of the settings. */
  url: string;
  pool: pg.Pool;
  wakeups: Wakeups;
  log: Logger;
}

const KURRENT = /^(?:kurrentdb|kurrent|kdb|esdb)(?:\+discover)?:\/\//;

/**
 * The event store that the settings choose, read by one tail a process. @throws SettingsError for a URL that none goes
 * by, Error when its server cannot be used
 */
export async function openEventStore({ url, pool, wakeups, log }: EventStoreDeps): Promise<EventStore> {
  const store =
    url === 'postgres' ? await createPostgresEventStore({ pool, wakeups, log }) : await openKurrent({ url, log });
  return fedEventStore(store, { log });
}

/** The KurrentDB of the settings. @throws as {@link openEventStore} */
export async function openKurrent({ url, log }: Pick<EventStoreDeps, 'url' | 'log'>): Promise<EventStore> {
  if (!KURRENT.test(url))
    throw new SettingsError(
      'LUMIO_EVENT_STORE__URL: must be postgres, or the connection string of a KurrentDB like kurrentdb://user:password@host:2113',
    );
  // Loaded when it is used: the client brings a native library.
  const { createKurrentEventStore } = await import('./kurrentdb.js');
  try {
    return await createKurrentEventStore({ url, log });
  } catch (error) {
    throw new Error(`LUMIO_EVENT_STORE__URL: ${(error as Error).message}`, { cause: error });
  }
}
