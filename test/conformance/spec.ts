import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The checklist of spec doc3 §4.1, 6.3 and 6.4; a copy of `websocket.json` of the specification. */
export const SPEC = JSON.parse(readFileSync(join(__dirname, '../fixtures/websocket.json'), 'utf8')) as Record<
  string,
  unknown
>;

export type Row = Record<string, any>;
/** Throws where what the row says does not hold. */
export type Proof = (row: Row) => Promise<void>;
/** By the name of the row. */
export type Proofs = Readonly<Record<string, Proof>>;

/** Sections that are lists: by which member their rows are told apart. */
const LISTS: Readonly<Record<string, string>> = {
  upgrade: 'case',
  client_messages: 'type',
  server_messages: 'type',
  error_codes: 'code',
  error_rules: 'rule',
  gate_kinds: 'kind',
  channels: 'channel',
  heartbeat_and_limits: 'key',
  relay_rules: 'rule',
  relay_envelopes: 'internal_channel',
  chat_sub_types: 'data_type',
};
/** Notes about the rows, no rows. */
const NOTES = /_source$|^channel_table_rows|^relay_legacy_note$/;
/** What the client library does, which its own tests hold. */
const OF_CLIENTS = 'client_reconnect_guidance';

/** The rows of a section, with the names that its proofs have. */
export const rowsOf = (section: string): [string, Row][] => {
  const rows = SPEC[section];
  const key = LISTS[section];
  if (key === undefined) return [[section, rows as Row]];
  return (rows as Row[]).map((row) => [row[key] as string, row]);
};
/** All that is to be proven. */
export const SECTIONS = Object.keys(SPEC).filter((name) => !NOTES.test(name) && name !== OF_CLIENTS);
