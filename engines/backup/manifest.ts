import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { z } from 'zod';
import type { Blobs } from '../blobs/port';
import type { SecretBox } from '../secrets/port';

/** A file of a backup. */
const File = z.object({
  key: z.string(),
  size_bytes: z.number(),
  /** Of the file as it lies there (compressed). */
  sha256: z.string(),
});

export type BackedUpFile = z.infer<typeof File>;

/** Logs that lay outside the database. */
const Logs = z.object({
  /** Null when the topics are tables. */
  topics: z
    .array(
      z.object({
        topic: z.string(),
        partitions: z.array(
          z.object({
            partition: z.number(),
            records: z.number(),
            /** The offset after the last record. */
            next: z.number(),
            /** The last record and the SHA-256 of its value: a restore knows the log by them. */
            last: z.object({ offset: z.number(), sha256: z.string() }).nullable(),
            file: File,
          }),
        ),
      }),
    )
    .nullable(),
  /** Null when the domain events are a table. */
  events: z
    .object({
      count: z.number(),
      last: z.object({ stream: z.string(), revision: z.number(), id: z.string() }).nullable(),
      /** Each position that a checkpoint or a dead letter names, with the number of events up to it. */
      places: z.record(z.string(), z.number()),
      file: File,
    })
    .nullable(),
});
export type BackedUpLogs = z.infer<typeof Logs>;
export type BackedUpPartition = NonNullable<BackedUpLogs['topics']>[number]['partitions'][number];

const Table = z.object({
  name: z.string(),
  columns: z.array(z.string()),
  partitions: z.array(
    z.object({ name: z.string(), parent: z.string(), bound: z.string(), part_key: z.string().nullable() }),
  ),
  rows: z.number(),
  /** Of the uncompressed rows, in COPY's text format. */
  content_bytes: z.number(),
  content_sha256: z.string(),
  file: File,
});
export type BackedUpTable = z.infer<typeof Table>;

export const Manifest = z.object({
  format: z.literal(1),
  lumio_version: z.string(),
  /** RFC 3339 UTC: the snapshot that all tables show. */
  taken_at: z.string(),
  installation_id: z.string(),
  server_version: z.string(),
  /** Names of the schema's steps. */
  steps: z.array(z.string()),
  /** Identities of event store and broker, which checkpoints name. */
  engines: z.object({ events: z.string(), broker: z.string() }),
  /** Known text sealed under the master keys: a restore without them is refused before it begins. */
  probe: z.string(),
  tables: z.array(Table),
  sequences: z.array(z.object({ name: z.string(), last_value: z.number().nullable() })),
  /** Tables that are not in here: derived, of no use elsewhere, or kept apart (subject keys). */
  left_out: z.array(z.string()),
  /** Null when all logs are tables. */
  logs: Logs.nullable(),
  /** What the blob store held, as NDJSON of key, size, hash and type. */
  blobs: File.extend({ count: z.number(), total_bytes: z.number(), copied: z.boolean() }),
});
export type Manifest = z.infer<typeof Manifest>;

export const PROBE_CONTEXT = 'backup-probe';
export const PROBE_TEXT = 'lumio backup';

/** Where a backup's parts lie; `prefix` is '' or ends in `/`. */
export const manifestKey = (prefix: string) => `${prefix}manifest.json`;
export const tableKey = (prefix: string, table: string) => `${prefix}tables/${table}.copy.gz`;
export const blobListKey = (prefix: string) => `${prefix}blobs.ndjson.gz`;
export const blobCopyKey = (prefix: string, key: string) =>
  // A name of its own, since the key's path and ours together may be longer than a key can be.
  `${prefix}blobs/${createHash('sha256').update(key).digest('hex')}`;

/**
 * The manifest as it is stored, with a member `mac` over everything else in it, the checksums of all files included:
 * who can write to the backup's place, and does not have the master keys, can change nothing that a restore would take.
 */
export function signedManifest(manifest: Manifest, secrets: SecretBox): string {
  const mac = secrets.sign(JSON.stringify(manifest), MAC_CONTEXT);
  return `${JSON.stringify({ ...manifest, mac }, null, 2)}\n`;
}

/** What lies there, with what says whether it is what was backed up. */
export interface FoundManifest {
  manifest: Manifest;
  /**
   * Absent in backups of builds before. @throws Error in one line when the manifest was changed or the master keys are
   * others
   */
  verify: ((secrets: SecretBox) => void) | undefined;
}

/** @throws Error in one line when there is no backup, or it is of a form that this program does not know */
export async function readManifest(from: Pick<Blobs, 'get'>, prefix: string): Promise<FoundManifest> {
  const content = await from.get(manifestKey(prefix));
  if (!content) throw new Error('there is no finished backup here: manifest.json is missing');
  const { mac, ...signed } = parseObject((await buffer(content)).toString());
  const parsed = Manifest.safeParse(signed);
  if (!parsed.success || (mac !== undefined && typeof mac !== 'string')) throw new Error(UNKNOWN_FORM);
  // What is read is what was signed: parsing and writing again keeps the order of members.
  const verify =
    mac === undefined ? undefined : (secrets: SecretBox) => verifyMac(secrets, mac, JSON.stringify(signed));
  return { manifest: parsed.data, verify };
}

const MAC_CONTEXT = 'backup manifest';
const UNKNOWN_FORM = 'manifest.json is not of a form that this program knows';

function parseObject(text: string): Record<string, unknown> {
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(text));
  } catch (error) {
    throw new Error(UNKNOWN_FORM, { cause: error });
  }
}

function verifyMac(secrets: SecretBox, mac: string, text: string): void {
  try {
    secrets.verify(mac, text, MAC_CONTEXT);
  } catch (error) {
    throw new Error(`manifest.json is not what was backed up: ${(error as Error).message}`, { cause: error });
  }
}
