import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { InvalidArgumentError, type Command } from 'commander';
import type { Settings } from '../kernel/settings/settings';
import { LOGS_OF_RECORD } from '../domain/common/records';
import { createBackup } from '../engines/backup/backup';
import type { OutsideLogs, RecordCodec } from '../engines/backup/logs';
import { verifyBackup } from '../engines/backup/verify';
import { openBlobs } from '../engines/blobs/open';
import type { Blobs } from '../engines/blobs/port';
import { createSecretBox } from '../privacy/secrets/box';
import { parseMasterKeys } from '../privacy/secrets/master-keys';
import type { SecretBox } from '../privacy/secrets/port';
import { decodeSegment, encodeSegment } from '../maintenance/archive/format';
import { ARCHIVE_PREFIX } from '../maintenance/archive/segments';
import { HistoryTruncated, readStored } from '../projections/runtime/rebuild/source';
import { openConfiguredBlobs } from '../engines/blobs/address';
import { masterKeyText } from '../privacy/secrets/own-master-key';
import { readSettings } from '../bin/read-settings';
import { VERSION } from '../bin/version';
import { runCommand, type Connect, type FullContext } from './runtime/context';
import { tablesLeftOut } from './runtime/left-out';
import { bytes, progressBar } from './runtime/progress';

/** Prefix of backups in the configured blob store, which a backup excludes. */
const BACKUPS_PREFIX = 'backups/';
/** Location of a backup: a folder, an S3 address, or `blob[:name]` for the configured blob store. */
export interface BackupPlace {
  blobs: Blobs;
  prefix: string;
  /** Name for people, without secrets. */
  shown: string;
  close(): Promise<void>;
}

export const place = (text: string): string => {
  if (text === '') throw new InvalidArgumentError('must be a folder, s3://…, or blob[:name].');
  return text;
};
export const PLACE_HELP = 'a folder, s3://KEY:SECRET@host/bucket, or blob:NAME for the configured blob store';

/** @param own opens the configured blob store */
export async function openPlace(text: string, own: () => Promise<Blobs>, fallback_name?: string): Promise<BackupPlace> {
  if (text === 'blob' || text.startsWith('blob:')) {
    const name = text.slice('blob:'.length) || fallback_name;
    if (!name) throw new Error('name the backup in the blob store: blob:NAME');
    return {
      blobs: await own(),
      prefix: `${BACKUPS_PREFIX}${name}/`,
      shown: `blob:${name}`,
      close: async () => undefined,
    };
  }
  const blobs = await openBlobs(text);
  return { blobs, prefix: '', shown: text.replace(/\/\/[^@/]*@/, '//'), close: () => blobs.close() };
}

/** `lumio backup PLACE`, `lumio backup verify PLACE`. docs/operating/backup.md. */
export function register(program: Command, connect: Connect<FullContext>): void {
  const restored = () => connect({ restored: true });
  const group = program
    .command('backup')
    .argument('<place>', PLACE_HELP, place)
    .description(
      'copy everything that cannot be derived, as of one moment, while Lumio runs; without subject keys (see: lumio keys)',
    )
    .option('--with-blobs', 'copy the blobs too, not only their list')
    .action((text: string, options: { withBlobs?: boolean }) =>
      runCommand(restored, async (context) => {
        const name = new Date().toISOString().replaceAll(':', '').slice(0, 17);
        const target = await openPlace(text, async () => context.blobs, name);
        const bar = progressBar('backup {bar} {percentage}% | {what}');
        try {
          const manifest = await createBackup({
            pool: context.db.pool,
            target: target.blobs,
            prefix: target.prefix,
            blobs: context.blobs,
            copy_blobs: options.withBlobs ?? false,
            // Segments of the archive are immutable, so their store is their backup.
            prefixes_left_out: [BACKUPS_PREFIX, ...(options.withBlobs ? [] : [ARCHIVE_PREFIX])],
            leave_out: tablesLeftOut(context.projections),
            engines: { events: context.events.id, broker: context.broker.id },
            logs: outsideLogs(context),
            secrets: context.secrets,
            version: VERSION,
            onProgress: ({ done, total, what }) => bar.update(done, total, what),
          });
          bar.stop();
          const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
          const size = manifest.tables.reduce((sum, table) => sum + table.file.size_bytes, 0);
          process.stdout.write(
            `${target.shown}: ${manifest.tables.length} tables, ${rows} rows, ${bytes(size)}, as of ${manifest.taken_at}\n`,
          );
        } finally {
          bar.stop();
          await target.close();
        }
      }),
    );

  group
    .command('verify')
    .argument('<place>', PLACE_HELP, place)
    .description('read a backup whole and hold it against its checksums')
    .action(async (text: string) => {
      const bar = progressBar('verify {bar} {percentage}% | {what}');
      let from: BackupPlace | undefined;
      try {
        from = await openPlace(text, ownBlobs);
        const secrets = presentSecrets(readSettings());
        const { manifest, problems } = await verifyBackup({
          from: from.blobs,
          prefix: from.prefix,
          secrets,
          onProgress: ({ done, total, what }) => bar.update(done, total, what),
        });
        bar.stop();
        if (!secrets) process.stderr.write('lumio: the signature was not checked: secrets.keys is not here\n');
        for (const problem of problems) process.stderr.write(`lumio: ${problem}\n`);
        process.exitCode = problems.length > 0 ? 1 : 0;
        if (problems.length === 0)
          process.stdout.write(`${from.shown}: sound, ${manifest.tables.length} tables as of ${manifest.taken_at}\n`);
      } catch (error) {
        process.stderr.write(`lumio: ${(error as Error).message}\n`);
        process.exitCode = 1;
      } finally {
        bar.stop();
        await from?.close();
      }
    });
}

/** The secret box of existing master keys; never creates any. */
function presentSecrets(settings: Settings): SecretBox | undefined {
  const known = settings.secrets.keys !== undefined || existsSync(join(settings.data_dir, 'secrets.keys'));
  return known ? createSecretBox(parseMasterKeys(masterKeyText(settings))) : undefined;
}

/** Logs outside the database; archived records belong to them. */
function outsideLogs(context: FullContext): OutsideLogs | undefined {
  const { broker, stored_events: events } = context;
  const inside = (id: string) => id.startsWith('postgres');
  if (inside(broker.id) && inside(events.id)) return undefined;
  const read = async function* (topic: string, partition: number, to: number) {
    try {
      yield* readStored(context, topic, partition, 0, to);
    } catch (error) {
      // Thrown before the first record. Lost records cannot be backed up, so the backup starts at the earliest
      // remaining one.
      if (!(error instanceof HistoryTruncated)) throw error;
      const { earliest } = (await broker.bounds(topic)).get(partition)!;
      yield* broker.read(topic, partition, earliest, to);
    }
  };
  return {
    codec: RECORD_CODEC,
    broker: inside(broker.id) ? undefined : { port: broker, topics: LOGS_OF_RECORD, read },
    events: inside(events.id) ? undefined : events,
  };
}

/** Codec of record logs in backups: the archive's format. */
export const RECORD_CODEC: RecordCodec = { encode: encodeSegment, decode: decodeSegment };

/** Opens the configured blob store for commands without a database. */
export async function ownBlobs(): Promise<Blobs> {
  return openConfiguredBlobs(readSettings());
}
