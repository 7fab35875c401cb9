import type pg from 'pg';
import { fedEventStore } from './feed/feed';
import type { EventStore } from './port';
import { createPostgresEventStore } from './postgres/store';
import type { Logger } from '../log/port';
import type { Wakeups } from '../wakeups/port';
import { SettingsError } from '../../kernel/settings/error';

export interface EventStoreDeps {
  /** `event_store.url` of the settings. */
  url: string;
  pool: pg.Pool;
  wakeups: Wakeups;
  log: Logger;
}

const KURRENT = /^(?:kurrentdb|kurrent|kdb|esdb)(?:\+discover)?:\/\//;

/**
 * Opens the event store of the settings, read by one tail per process. @throws SettingsError for an unknown URL, Error
 * when the server cannot be used
 */
export async function openEventStore({ url, pool, wakeups, log }: EventStoreDeps): Promise<EventStore> {
  const store =
    url === 'postgres' ? await createPostgresEventStore({ pool, wakeups, log }) : await openKurrent({ url, log });
  return fedEventStore(store, { log });
}

/** Opens the KurrentDB of the settings. @throws as {@link openEventStore} */
export async function openKurrent({ url, log }: Pick<EventStoreDeps, 'url' | 'log'>): Promise<EventStore> {
  if (!KURRENT.test(url))
    throw new SettingsError(
      'LUMIO_EVENT_STORE__URL: must be postgres, or the connection string of a KurrentDB like kurrentdb://user:password@host:2113',
    );
  // Loaded only when used, because the client includes a native library.
  const { createKurrentEventStore } = await import('./kurrentdb/store.js');
  try {
    return await createKurrentEventStore({ url, log });
  } catch (error) {
    throw new Error(`LUMIO_EVENT_STORE__URL: ${(error as Error).message}`, { cause: error });
  }
}
