import { readdirSync } from 'node:fs';
import type { Knex } from 'knex';

/** One step of the schema. `down` is not offered: a wrong step is mended by the next one. */
export interface Migration {
  name: string;
  /**
   * The schema generation that begins with this step, one above the last. Only a step after which the builds before
   * cannot run has one: they refuse to start from then on. Other steps only add, and builds before go on beside them.
   */
  generation?: number;
  up(knex: Knex): PromiseLike<unknown>;
}

const STEP = /^(\d{4}-[a-z0-9-]+)\.(js|ts)$/;

/**
 * Every step beside this file, by its number: in the order they are applied; never renumbered, never edited once
 * released.
 * @throws Error when a file does not export the step that its name says
 */
export const MIGRATIONS: readonly Migration[] = readdirSync(__dirname)
  .flatMap((file) => STEP.exec(file)?.[1] ?? [])
  .sort()
  .map((name) => {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- which steps there are is known only now
    const exported = Object.values(require(`./${name}`) as Record<string, Migration>);
    const step = exported.find((one) => one.name === name);
    if (step === undefined) throw new Error(`migrations/${name} exports no step of its name`);
    return step;
  });
