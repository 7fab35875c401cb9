import { sqlFunction } from './functions';
import type { Migration } from './index';

/**
 * Search of people and accounts by any part of a name or address, with an index over the pieces of the texts, made by
 * functions that every role may create, because extensions are not available everywhere.
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
