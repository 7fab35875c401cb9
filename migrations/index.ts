import { readdirSync } from 'node:fs';
import type { Knex } from 'knex';

/** Step of the schema. There is no `down`: the next step repairs a wrong one. */
export interface Migration {
  name: string;
  /**
   * The schema generation that begins with this step, one above the last. Only a step that earlier releases cannot run
   * with has one: those releases then refuse to start. Other steps only add, so that earlier releases keep running next
   * to this one.
   */
  generation?: number;
  up(knex: Knex): PromiseLike<unknown>;
}

const STEP = /^(\d{4}-[a-z0-9-]+)\.(js|ts)$/;

/**
 * All steps in this folder, in the order of their numbers, in which they are applied; never renumbered, never edited
 * once released.
 * @throws Error when a file does not export the step of its name
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
