import type { Command } from 'commander';
import { applyErasedProfiles } from '../access/profiles';
import type { Settings } from '../kernel/settings';
import { LOGS_OF_RECORD } from '../domain/records';
import { logRestoresOf, type LogRestores } from '../engines/backup/log-restores';
import type { Manifest } from '../engines/backup/manifest';
import { restoreBackup } from '../engines/backup/restore';
import { restoreBlobs } from '../engines/backup/restore-blobs';
import type { Blobs } from '../engines/blobs/port';
import { createLog } from '../engines/log/pino';
import { createPrometheusMetrics } from '../engines/metrics/prometheus';
import { createSecretBox } from '../engines/secrets/box';
import { parseMasterKeys } from '../engines/secrets/master-keys';
import { applyNotedErasures, importSubjectKeys } from '../engines/subject-keys/transfer';
import { createArchiveReader } from '../maintenance/archive-reader';
import { sweepEvents } from '../maintenance/events-retention';
import { ensureEventLogPartitions } from '../projections/events';
import { ensureLedgerPartitions } from '../projections/runtime/ledger';
import { rebuild } from '../projections/runtime/rebuild';
import { openBareDatabase } from './runtime/bare-database';
import { openConfiguredBlobs } from '../engines/blobs/address';
import { namingDatabase } from '../engines/postgres/url';
import type { Engines } from '../engines/engines';
import { openEngines } from '../bin/engines';
import { masterKeyText } from '../engines/secrets/own-master-key';
import { openOutsideEngines } from './runtime/outside-engines';
import { PROJECTIONS } from '../bin/areas';
import { readSettings } from '../bin/read-settings';
import { restoreLogs } from './runtime/restored-logs';
import { openPlace, place, PLACE_HELP, RECORD_CODEC } from './backup';
import { checkKeyExport, keyLines, shown } from './keys';
import { progressBar } from './runtime/progress';

/** `lumio restore PLACE`: into the configured, empty database. docs/operating/backup.md. */
export function register(program: Command): void {
  program
    .command('restore')
    .argument('<place>', PLACE_HELP, place)
    .description(
      'fill the configured, empty database from a backup and rebuild every read model; Lumio must not run on it',
    )
    .option('--keys <file>', 'subject keys to import (lumio keys export); without them personal data reads as erased')
    .option('--unsigned', 'take a backup without a signature, as older builds made them')
    .action(async (text: string, options: { keys?: string; unsigned?: boolean }) => {
      try {
        await restore(text, options.keys, options.unsigned ?? false);
      } catch (error) {
        process.stderr.write(`lumio: ${error instanceof Error ? error.message : String(error)}\n`);
        process.exitCode = 1;
      }
    });
}

async function restore(text: string, keys_file: string | undefined, unsigned: boolean): Promise<void> {
  if (keys_file !== undefined) await checkKeyExport(keys_file);
  const settings = readSettings();
  const { log } = createLog('warn', 'stderr');
  const bare = await openBareDatabase(settings, log);
  try {
    const secrets = createSecretBox(parseMasterKeys(masterKeyText(settings)));
    const blobs = await openConfiguredBlobs(settings);
    try {
      const from = await openPlace(text, async () => blobs);
      const bar = progressBar('restore {bar} {percentage}% | {what}');
      try {
        const onProgress = ({ done, total, what }: { done: number; total: number; what: string }) =>
          bar.update(done, total, what);
        let log_restores: LogRestores = { topics: 'tables', events: 'tables' };
        const manifest = await namingDatabase(settings, () =>
          restoreBackup({
            url: bare.url,
            from: from.blobs,
            prefix: from.prefix,
            secrets,
            unsigned,
            mayBegin: async (found) => void (log_restores = await decideLogRestores(settings, found)),
            onProgress,
          }),
        );
        const { copied, missing } = await restoreBlobs({
          from: from.blobs,
          prefix: from.prefix,
          manifest,
          to: blobs,
          onProgress,
        });
        await throughPorts(bare.url, from.blobs, manifest, log_restores, (what) => bar.update(1, 1, what));
        bar.stop();
        process.stdout.write(
          `${from.shown}: ${manifest.tables.length} tables as of ${manifest.taken_at}, ${copied} blobs copied\n`,
        );
        if (log_restores.topics === 'keep') process.stdout.write('topics: kept as the broker has them\n');
        if (log_restores.events === 'keep') process.stdout.write('domain events: kept as the event store has them\n');
        for (const key of missing)
          process.stderr.write(`lumio: blob ${key} is neither in the blob store nor in the backup\n`);
        if (missing.length > 0) process.exitCode = 1;
      } finally {
        bar.stop();
        await from.close();
      }
    } finally {
      await blobs.close();
    }
    await finish(bare.url, keys_file);
  } finally {
    await bare.close();
  }
}

/**
 * What is to become of the logs, by what the configured engines hold. @throws Error in one line when that fits no
 * backup
 */
async function decideLogRestores(settings: Settings, manifest: Manifest): Promise<LogRestores> {
  const { log } = createLog('warn', 'stderr');
  const outside = await openOutsideEngines(settings, log);
  try {
    return await logRestoresOf(manifest, outside);
  } finally {
    await outside.close();
  }
}

/** Logs that come, or go, outside the database. */
async function throughPorts(
  url: string,
  from: Blobs,
  manifest: Manifest,
  log_restores: LogRestores,
  report: (what: string) => void,
): Promise<void> {
  if (log_restores.topics === 'tables' && log_restores.events === 'tables') return;
  const engines = await enginesOn(url);
  const { log } = createLog('warn', 'stderr');
  try {
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
  } finally {
    await engines.close();
  }
}

function enginesOn(url: string): Promise<Engines> {
  const { log } = createLog('warn', 'stderr');
  const lost = (reason: string) => log.error({ reason }, 'the database is gone');
  return openEngines({
    settings: readSettings(),
    log,
    metrics: createPrometheusMetrics({}),
    running_url: url,
    onLost: lost,
  });
}

/** Keys first, then the read models: without a person's key their records read as erased. */
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
    // Only now there are all read models that say how long events are kept.
    await sweepEvents(engines.db);
    await ensureEventLogPartitions(engines.db);
    await ensureLedgerPartitions(engines.db);
  } finally {
    await engines.close();
  }
}
