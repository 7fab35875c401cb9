import type { Command } from 'commander';
import { applyErasedProfiles } from '../services/identity/profiles';
import type { Settings } from '../kernel/settings/settings';
import { LOGS_OF_RECORD } from '../domain/common/records';
import { logRestoresOf, type LogRestores } from '../engines/backup/log-restores';
import type { Manifest } from '../engines/backup/manifest';
import { readVerified, restoreBackup, type RestoreOptions } from '../engines/backup/restore';
import { restoreBlobs } from '../engines/backup/restore-blobs';
import {
  checkContinuable,
  CONTINUE,
  markFinished,
  markUnfinished,
  unfinishedRestore,
  type UnfinishedRestore,
} from '../engines/backup/unfinished';
import type { Blobs } from '../engines/blobs/port';
import { createLog } from '../engines/log/pino';
import { createPrometheusMetrics } from '../engines/metrics/prometheus';
import { createSecretBox } from '../privacy/secrets/box';
import { parseMasterKeys } from '../privacy/secrets/master-keys';
import { applyNotedErasures, importSubjectKeys } from '../privacy/subject-keys/transfer';
import { createArchiveReader } from '../maintenance/archive/reader';
import { sweepChat } from '../maintenance/retention/chat';
import { sweepEvents } from '../maintenance/retention/events';
import { ensureEventLogPartitions } from '../projections/events/event-log-partitions';
import { ensureLedgerPartitions } from '../projections/runtime/ledger/ledger';
import { rebuild } from '../projections/runtime/rebuild/rebuild';
import { openBareDatabase } from './runtime/bare-database';
import { openConfiguredBlobs } from '../engines/blobs/address';
import { LOCKS } from '../engines/locks/port';
import { connectOnce } from '../engines/postgres/migrate';
import { asQueryable } from '../engines/postgres/pool';
import { namingDatabase } from '../engines/postgres/url';
import type { Engines } from '../engines/engines';
import { openEngines } from '../bin/engines';
import { masterKeyText } from '../privacy/secrets/own-master-key';
import { openOutsideEngines } from './runtime/outside-engines';
import { PROJECTIONS } from '../bin/areas';
import { readSettings } from '../bin/read-settings';
import { restoreLogs } from './runtime/restored-logs';
import { openPlace, place, PLACE_HELP, RECORD_CODEC } from './backup';
import { checkKeyExport, keyLines, shown } from './keys';
import { progressBar } from './runtime/progress';

/** `lumio restore PLACE`: fills the configured, empty database. docs/operating/backup.md. */
export function register(program: Command): void {
  program
    .command('restore')
    .argument('<place>', PLACE_HELP, place)
    .description(
      'fill the configured, empty database from a backup and rebuild every read model; Lumio must not run on it',
    )
    .option('--keys <file>', 'subject keys to import (lumio keys export); without them personal data reads as erased')
    .option('--unsigned', 'take a backup without a signature, as older builds made them')
    .option('--continue', 'do the rest of a restore that ended after the rows were there; give the same place and keys')
    .action(async (text: string, options: RestoreFlags) => {
      try {
        await restore(text, options);
      } catch (error) {
        process.stderr.write(`lumio: ${error instanceof Error ? error.message : String(error)}\n`);
        process.exitCode = 1;
      }
    });
}

interface RestoreFlags {
  keys?: string;
  unsigned?: boolean;
  continue?: boolean;
}

async function restore(text: string, flags: RestoreFlags): Promise<void> {
  if (flags.keys !== undefined) await checkKeyExport(flags.keys);
  const settings = readSettings();
  const { log } = createLog('warn', { to: 'stderr' });
  const bare = await openBareDatabase(settings, log);
  try {
    const blobs = await openConfiguredBlobs(settings);
    try {
      const from = await openPlace(text, async () => blobs);
      const bar = progressBar('restore {bar} {percentage}% | {what}');
      const onProgress = ({ done, total, what }: Progress) => bar.update(done, total, what);
      try {
        const options: RestoreOptions = {
          url: bare.url,
          from: from.blobs,
          prefix: from.prefix,
          secrets: createSecretBox(parseMasterKeys(masterKeyText(settings))),
          unsigned: flags.unsigned ?? false,
          mayBegin: (found) => decideLogRestores(settings, found),
          onProgress,
        };
        const manifest = await namingDatabase(settings, () =>
          flags.continue ? readVerified(options) : restoreBackup(options),
        );
        await withRest(bare.url, manifest, async (mark) => {
          const restored_blobs = await restoreBlobs({ ...options, manifest, to: blobs, onProgress });
          await throughPorts(bare.url, from.blobs, manifest, mark, (what) => bar.update(1, 1, what));
          bar.stop();
          report(from.shown, manifest, mark.log_restores, restored_blobs);
          await finish(bare.url, flags.keys);
        });
      } finally {
        bar.stop();
        await from.close();
      }
    } finally {
      await blobs.close();
    }
  } finally {
    await bare.close();
  }
}

type Progress = Parameters<NonNullable<RestoreOptions['onProgress']>>[0];

/**
 * Runs the steps after the rows, which are repeatable, and then removes the mark, under a lock against concurrent
 * restores.
 * @throws Error with a one-line message when the database has no unfinished restore of this backup
 */
async function withRest(
  url: string,
  manifest: Manifest,
  rest: (mark: UnfinishedRestore) => Promise<void>,
): Promise<void> {
  const client = await connectOnce(url, 'lumio-restore');
  try {
    const db = asQueryable(client);
    const [lock] = await db.query('select pg_try_advisory_lock($1) as taken', [LOCKS.restore]);
    if (!lock!.taken) throw new Error('another restore of this database is under way');
    const mark = checkContinuable(await unfinishedRestore(db), manifest);
    try {
      await rest(mark);
    } catch (error) {
      process.stderr.write(`lumio: the restore is not finished; when the cause is mended: ${CONTINUE}\n`);
      throw error;
    }
    await markFinished(db);
  } finally {
    await client.end();
  }
}

function report(
  place: string,
  { tables, taken_at }: Manifest,
  log_restores: LogRestores,
  { copied, missing, differing }: Awaited<ReturnType<typeof restoreBlobs>>,
): void {
  process.stdout.write(`${place}: ${tables.length} tables as of ${taken_at}, ${copied} blobs copied\n`);
  if (log_restores.topics === 'keep') process.stdout.write('topics: kept as the broker has them\n');
  if (log_restores.events === 'keep') process.stdout.write('domain events: kept as the event store has them\n');
  for (const key of differing)
    process.stderr.write(`lumio: blob ${key} was written again since the backup and is kept as it is\n`);
  for (const key of missing)
    process.stderr.write(`lumio: blob ${key} is neither in the blob store nor in the backup\n`);
  if (missing.length > 0) process.exitCode = 1;
}

/**
 * Decides how to restore the logs, by the content of the configured engines. @throws Error with a one-line message when
 * that content fits no backup
 */
async function decideLogRestores(settings: Settings, manifest: Manifest): Promise<LogRestores> {
  const { log } = createLog('warn', { to: 'stderr' });
  const outside = await openOutsideEngines(settings, log);
  try {
    return await logRestoresOf(manifest, outside);
  } finally {
    await outside.close();
  }
}

/** Restores logs that were, or are to be, outside the database. */
async function throughPorts(
  url: string,
  from: Blobs,
  manifest: Manifest,
  mark: UnfinishedRestore,
  report: (what: string) => void,
): Promise<void> {
  const { log_restores } = mark;
  if (mark.logs === 'done' || (log_restores.topics === 'tables' && log_restores.events === 'tables')) return;
  const engines = await enginesOn(url);
  const { log } = createLog('warn', { to: 'stderr' });
  try {
    await markUnfinished(engines.db, { ...mark, logs: 'begun' });
    await restoreLogs({
      manifest,
      log_restores,
      engines,
      from,
      codec: RECORD_CODEC,
      topics: LOGS_OF_RECORD,
      log,
      report,
    });
    await markUnfinished(engines.db, { ...mark, logs: 'done' });
  } finally {
    await engines.close();
  }
}

function enginesOn(url: string): Promise<Engines> {
  const { log } = createLog('warn', { to: 'stderr' });
  const lost = (reason: string) => log.error({ reason }, 'the database is gone');
  return openEngines({
    command: 'restore',
    settings: readSettings(),
    log,
    metrics: createPrometheusMetrics({}),
    running_url: url,
    onLost: lost,
  });
}

/** Imports keys, then rebuilds the read models: without a person's key their records read as erased. */
async function finish(url: string, keys_file: string | undefined): Promise<void> {
  const engines = await enginesOn(url);
  try {
    if (keys_file !== undefined)
      process.stdout.write(`${shown(keys_file, await importSubjectKeys(engines, keyLines(keys_file)))}\n`);
    else
      process.stderr.write(
        'lumio: no --keys given: personal data reads as erased until they are imported and read models rebuilt\n',
      );
    await applyNotedErasures(engines.db, engines.blobs);
    await applyErasedProfiles(engines);
    for (const { name } of PROJECTIONS) {
      const bar = progressBar(`${name} {bar} {percentage}% | {value}/{total} records | {eta_formatted} left`);
      try {
        const onProgress = ({ done, total }: { done: number; total: number | null }) => bar.update(done, total ?? done);
        const result = await rebuild({
          ...engines,
          db: engines.build_db,
          projections: PROJECTIONS,
          name,
          readArchived: createArchiveReader(engines),
          onProgress,
        });
        bar.stop();
        process.stdout.write(`${name}: ${result.records} records, ${result.parked} parked\n`);
      } finally {
        bar.stop();
      }
    }
    // Retention needs all read models that define it, so it runs last.
    await sweepEvents(engines.db);
    await sweepChat(engines.db);
    await ensureEventLogPartitions(engines.db);
    await ensureLedgerPartitions(engines.db);
  } finally {
    await engines.close();
  }
}
