import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A function of the database, as this build wants it. */
export interface SqlFunction {
  name: string;
  /** Rises with every change of the text; the database keeps the highest that any build has brought. */
  version: number;
  /** `create or replace function …`. */
  text: string;
}

const FOLDER = join(__dirname, 'functions');

/**
 * The current text of every function, each in a file of its name in `functions/`. The texts are installed after the
 * steps, where the database has a lower version or none. The previous release continues with the newer text: a function
 * keeps its arguments and results, and a change of these needs a function of another name.
 * @throws Error when a file does not begin with its version, or is not about the function of its name
 */
export const FUNCTIONS: readonly SqlFunction[] = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.sql'))
  .sort()
  .map((file) => {
    const name = file.replace(/\.sql$/, '');
    const text = readFileSync(join(FOLDER, file), 'utf8');
    const version = /^-- version (\d+)\n/.exec(text)?.[1];
    if (version === undefined || !text.includes(`\ncreate or replace function ${name}(`))
      throw new Error(`migrations/functions/${file} must begin with "-- version <n>" and create the function ${name}`);
    return { name, version: Number(version), text };
  });

/**
 * The current text of one function, for a step that calls it itself.
 * @throws Error when the function has no file
 */
export function sqlFunction(name: string): string {
  const found = FUNCTIONS.find((one) => one.name === name);
  if (!found) throw new Error(`there is no migrations/functions/${name}.sql`);
  return found.text;
}
