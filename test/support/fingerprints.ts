import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import type { Queryable } from '../../engines/postgres/port';
import type { Projection } from '../../kernel/projection';
import { tableSchemaText, sourceKey } from '../../projections/runtime/rebuild/fingerprint';

/** By projection: the version, and a hash of what its rows follow from. */
export type Fingerprints = Record<string, { version: number; fingerprint: string }>;

/**
 * What the rows of each projection follow from: its handlers with the columns of the events that they read, or the text
 * of its file where it has none, and its tables with their columns and constraints. Comments, line breaks and indexes
 * count for nothing.
 */
export async function fingerprintsOf(
  db: Queryable,
  projections: readonly Projection[],
  root: string,
): Promise<Fingerprints> {
  const found: Fingerprints = {};
  for (const p of projections) {
    const { name, version, tables, program = textOf(root, name) } = p;
    const shape = (await tableSchemaText(db, tables)).split('\n').filter((line) => !line.startsWith('CREATE INDEX'));
    const text = JSON.stringify([sourceKey(p), tables, program, shape]);
    found[name] = { version, fingerprint: createHash('sha256').update(text).digest('hex') };
  }
  return found;
}

/**
 * Projections that are not what the file says, though their version did not rise; new ones and those that rose are not.
 */
export const unraised = (file: Fingerprints, found: Fingerprints): string[] =>
  Object.entries(found).flatMap(([name, { version, fingerprint }]) => {
    const before = file[name];
    if (before === undefined || version > before.version) return [];
    return version === before.version && fingerprint === before.fingerprint ? [] : [name];
  });

/** The text of the file that declares it, without comments and imports: where a name comes from changes no row. */
function textOf(root: string, name: string): string {
  const entries = readdirSync(join(root, 'projections'), { withFileTypes: true, recursive: true });
  const texts = entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'));
  const text = texts.find((one) => declares(one, name));
  if (text === undefined) throw new Error(`no file of projections/ declares ${name}`);
  const body = text.replace(/^import\b[^;]*;$/gm, '');
  const { outputText } = ts.transpileModule(body, { compilerOptions: { removeComments: true } });
  return outputText.replace(/\s+/g, ' ');
}

const declares = (text: string, name: string): boolean => text.includes(`name: '${name}',`);
