import { TOPICS } from '../../domain/common/records';
import { textArray, type Queryable } from '../../engines/postgres/port';
import type { LoggedRecord } from '../../engines/records/port';
import { projection, topic } from '../../kernel/projection';
import { memberText } from '../../lib/json/members';

/** Keeps the authors of each account's chat. Separate from `chat-live`, whose announcements no build may interrupt. */
export const chatters = projection({
  name: 'chatters',
  version: 2,
  awaited: false,
  from: topic(TOPICS.chat_events),
  tables: ['chatters'],
  async apply(batch: readonly LoggedRecord[], tx: Queryable) {
    await addChatters(batch, tx);
    return [];
  },
});

/** Ordered, so that no two writers deadlock. */
const ADD = `
  insert into chatters (account_id, platform, person_key, first_received_at)
  select account_id, platform, person_key, first_received_at
  from (select unnest($1::text[])::uuid as account_id, unnest($2::text[]) as platform,
      unnest($3::text[])::uuid as person_key, unnest($4::text[])::timestamptz as first_received_at) said
  where not exists (select from chatters c where c.account_id = said.account_id and c.person_key = said.person_key)
  order by account_id, person_key
  on conflict do nothing`;

/**
 * Stores the authors of chat messages in an account's own rooms, at their first message. A record that an erasure made
 * unreadable still counts, so that a rebuild makes the same rows.
 */
async function addChatters(batch: readonly LoggedRecord[], tx: Queryable): Promise<void> {
  const firsts = new Map<string, LoggedRecord>();
  for (const record of batch) {
    const { account_id, platform, type, subject_key } = record;
    if (subject_key === undefined || type !== `${platform}:chat`) continue;
    const key = `${account_id.toLowerCase()} ${subject_key}`;
    if (!firsts.has(key) && !isFromAnotherRoom(record)) firsts.set(key, record);
  }
  if (firsts.size === 0) return;
  const said = [...firsts.values()];
  const columns = [
    said.map(({ account_id }) => account_id),
    said.map(({ platform }) => platform),
    said.map(({ subject_key }) => subject_key!),
    said.map(({ received_at }) => received_at),
  ];
  await tx.query(ADD, columns.map(textArray), 'chatters-add');
}

/** Reads the record's own member: the vendor's payload inside the record may have one of the same name. */
function isFromAnotherRoom({ raw }: LoggedRecord): boolean {
  const shared_chat = memberText(raw, ['shared_chat']);
  return shared_chat !== undefined && shared_chat !== 'null';
}
