import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { z } from 'zod';
import type { Blobs } from '../blobs/port';
import type { SecretBox } from '../../privacy/secrets/port';

/** A file of a backup. */
const File = z.object({
  key: z.string(),
  size_bytes: z.number(),
  /** Hash of the stored (compressed) file. */
  sha256: z.string(),
});

export type BackedUpFile = z.infer<typeof File>;

/** Logs outside the database. */
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
            /** The last record and the SHA-256 of its value, by which a restore identifies the log. */
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
      /** Positions of checkpoints and dead letters, each with the number of events up to it. */
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
  /** Size of the uncompressed rows, in COPY's text format. */
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
  /** Tables that are not in the backup: derived, without use elsewhere, or kept apart (subject keys). */
  left_out: z.array(z.string()),
  /** Null when all logs are tables. */
  logs: Logs.nullable(),
  /** List of the blob store, as NDJSON of key, size, hash and type. */
  blobs: File.extend({ count: z.number(), total_bytes: z.number(), copied: z.boolean() }),
});
export type Manifest = z.infer<typeof Manifest>;

export const PROBE_CONTEXT = 'backup-probe';
export const PROBE_TEXT = 'lumio backup';

/** Keys of a backup's parts; `prefix` is '' or ends in `/`. */
export const manifestKey = (prefix: string) => `${prefix}manifest.json`;
export const tableKey = (prefix: string, table: string) => `${prefix}tables/${table}.copy.gz`;
export const blobListKey = (prefix: string) => `${prefix}blobs.ndjson.gz`;
export const blobCopyKey = (prefix: string, key: string) =>
  // A hash, because the blob's key with the prefix may exceed the longest key.
  `${prefix}blobs/${createHash('sha256').update(key).digest('hex')}`;

/**
 * The stored manifest, with a member `mac` over all other members, including the checksums of all files: without the
 * master keys, write access to the backup cannot change anything that a restore would accept.
 */
export function signedManifest(manifest: Manifest, secrets: SecretBox): string {
  const mac = secrets.sign(JSON.stringify(manifest), MAC_CONTEXT);
  return `${JSON.stringify({ ...manifest, mac }, null, 2)}\n`;
}

/** A stored manifest, with the check of its MAC. */
export interface FoundManifest {
  manifest: Manifest;
  /**
   * Undefined for backups of older releases. @throws Error in one line when the manifest was changed or the master keys
   * differ
   */
  verify: ((secrets: SecretBox) => void) | undefined;
}

/** Reads the manifest. @throws Error in one line when it is missing, or of a form that this program does not know */
export async function readManifest(from: Pick<Blobs, 'get'>, prefix: string): Promise<FoundManifest> {
  const content = await from.get(manifestKey(prefix));
  if (!content) throw new Error('there is no finished backup here: manifest.json is missing');
  const { mac, ...signed } = parseObject((await buffer(content)).toString());
  const parsed = Manifest.safeParse(signed);
  if (!parsed.success || (mac !== undefined && typeof mac !== 'string')) throw new Error(UNKNOWN_FORM);
  // The signed text is equal to the text read here: parsing and writing again keeps the order of members.
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
