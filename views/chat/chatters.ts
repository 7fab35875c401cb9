import { textArray, type Queryable } from '../../engines/postgres/port';

/** An author in the chat of an account; `person_key` is the id of the key that seals their records. */
export interface Chatter {
  account_id: string;
  person_key: string;
}

/** True once the read model holds the authors of all stored messages; until then no author counts as new. */
export async function chattersAreKept(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ kept: boolean }>(
    `select coalesce(bool_and(built), false) as kept from checkpoints where projection = 'chatters'`,
    [],
    'chatters-kept',
  );
  return row!.kept;
}

/** Returns the chatters with an earlier message in the account, as far as the read model has applied events. */
export function knownChatters(db: Queryable, asked: readonly Chatter[]): Promise<Chatter[]> {
  return db.query<Chatter & Record<string, unknown>>(
    `select c.account_id, c.person_key from chatters c
     join (select unnest($1::text[])::uuid as account_id, unnest($2::text[])::uuid as person_key) asked
       using (account_id, person_key)`,
    [textArray(asked.map(({ account_id }) => account_id)), textArray(asked.map(({ person_key }) => person_key))],
    'chatters-known',
  );
}
