import type { Knex } from 'knex';

/** One step of the schema. `down` is not offered: a wrong step is mended by the next one. */
export interface Migration {
  name: string;
  up(knex: Knex): Promise<void>;
}

/** In the order they are applied; never reordered, never edited once released. */
export const MIGRATIONS: readonly Migration[] = [];
