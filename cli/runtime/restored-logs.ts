import type { LogRestores } from '../../engines/backup/log-restores';
import { eventsInFile, eventsInTable, topicsInFiles, topicsInTables } from '../../engines/backup/log-sources';
import type { RecordCodec } from '../../engines/backup/logs';
import type { Manifest } from '../../engines/backup/manifest';
import { restoreEvents, restoreTopic, type RestoreLogsOptions } from '../../engines/backup/restore-logs';
import type { Blobs } from '../../engines/blobs/port';
import { createPostgresBroker } from '../../engines/broker/postgres/broker';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import type { Logger } from '../../engines/log/port';
import { createArchiveReader } from '../../maintenance/archive/reader';
import { adoptSegments } from '../../maintenance/archive/adoption';
import { readStored } from '../../projections/runtime/rebuild/source';
import type { Engines } from '../../engines/engines';

/** Restored tables of topics, obsolete once the topics are in another broker. */
const TOPIC_TABLES = 'broker_records, broker_partitions, broker_topics';
const EVENT_TABLE = 'domain_events';

export interface RestoredLogsOptions {
  manifest: Manifest;
  log_restores: LogRestores;
  /** The restored database, and the logs that the settings name. */
  engines: Engines;
  /** Files of the backup. */
  from: Blobs;
  codec: RecordCodec;
  topics: readonly string[];
  log: Logger;
  report(what: string): void;
}

/**
 * Moves the logs to the configured engines after the database is restored: from the backup's files, or from the tables
 * when the installation moves to separate engines. A kept log gets the archive's newer segments listed.
 */
export async function restoreLogs(options: RestoredLogsOptions): Promise<void> {
  const { manifest, log_restores, engines, report } = options;
  const { db, broker, stored_events: events } = engines;
  const write: RestoreLogsOptions = { db, broker, events, from: manifest.engines, report };
  if (log_restores.topics === 'keep') await adoptSegments(db, engines.blobs, broker.id);
  if (log_restores.topics === 'write') await writeTopics(options, write);
  if (log_restores.events === 'write') await writeEvents(options, write);
}

async function writeTopics(options: RestoredLogsOptions, write: RestoreLogsOptions): Promise<void> {
  const { manifest, engines, from, codec, topics } = options;
  const { db, wakeups, blobs } = engines;
  if (manifest.logs?.topics) {
    for (const topic of topicsInFiles(from, manifest, codec)) await restoreTopic(write, topic);
    return;
  }
  const broker = createPostgresBroker({ pool: db.pool, wakeups, id: manifest.engines.broker });
  try {
    const stored = { broker, readArchived: createArchiveReader({ db, blobs, broker }) };
    const read = (topic: string, partition: number, to: number) => readStored(stored, topic, partition, 0, to);
    for (const topic of await topicsInTables(broker, topics, read)) await restoreTopic(write, topic);
  } finally {
    await broker.close();
  }
  await db.query(`truncate ${TOPIC_TABLES} cascade`);
}

async function writeEvents(
  { manifest, engines, from, log }: RestoredLogsOptions,
  write: RestoreLogsOptions,
): Promise<void> {
  const { db, wakeups } = engines;
  if (manifest.logs?.events) return restoreEvents(write, eventsInFile(from, manifest.logs.events));
  const events = await createPostgresEventStore({ pool: db.pool, wakeups, log });
  try {
    await restoreEvents(write, await eventsInTable(events, db));
  } finally {
    await events.close();
  }
  await db.query(`truncate ${EVENT_TABLE}`);
}
