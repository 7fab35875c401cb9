import type { Migration } from './index';

/** Marks of the texts of sends: some platforms name no id of a message, so that its echo is found by its text alone. */
export const echoMarks: Migration = {
  name: '0710-echo-marks',
  up: (knex) => knex.raw(`alter table chat_sends add column echo_mark smallint`),
};
