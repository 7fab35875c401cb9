import { sqlFunction } from './functions';
import type { Migration } from './index';

/**
 * Operators find people and accounts by any part of a name or address: by an index over the pieces of the texts, of
 * functions that every role may make, since extensions are not to be had everywhere.
 */
export const searchedTexts: Migration = {
  name: '0204-searched-texts',
  up: (knex) =>
    knex.raw(`
      ${sqlFunction('text_pieces')}
      create index profiles_pieces on profiles using gin (text_pieces(display_name || ' ' || coalesce(email, '')));
      create index accounts_pieces on accounts using gin (text_pieces(name)) where name is not null;
    `),
};
