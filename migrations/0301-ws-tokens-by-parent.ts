import type { Migration } from './index';

/** The end of a session or popout token deletes the WebSocket tokens that it minted. */
export const wsTokensByParent: Migration = {
  name: '0301-ws-tokens-by-parent',
  up: (knex) => knex.raw('create index ws_tokens_parent_idx on ws_tokens (parent_id)'),
};
