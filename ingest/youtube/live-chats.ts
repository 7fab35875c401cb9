import type { Queryable } from '../../engines/postgres/port';
import type { LinkedConnection } from '../runtime/connection/adapter';

/** Maximum age of an answer, which all connections of a process share. */
const FRESH_MS = 1_000;

/** The live chats on air, by account, from the polls of live channels. */
export function createLiveChats(db: Queryable): (connection: LinkedConnection) => Promise<readonly string[]> {
  let asked: { at: number; chats: Promise<Map<string, string[]>> } | undefined;
  return async ({ account_id }) => {
    if (asked === undefined || performance.now() - asked.at > FRESH_MS) {
      asked = { at: performance.now(), chats: read(db) };
    }
    return (await asked.chats).get(account_id ?? '') ?? [];
  };
}

async function read(db: Queryable): Promise<Map<string, string[]>> {
  const rows = await db.query<{ account_id: string; chats: string[] }>(
    `select account_id::text, array_agg(live_chat_id order by broadcast_id) as chats from channel_status
     where platform = 'youtube' and is_online and live_chat_id is not null group by account_id`,
    [],
    'youtube-live-chats',
  );
  return new Map(rows.map(({ account_id, chats }) => [account_id, chats]));
}
