import type { Database } from '../../engines/postgres/port';
import type { Wakeups } from '../../engines/wakeups/port';
import type { ErasedChats, ErasureServices, Eraser, Person } from '../../kernel/eraser';
import { withTimeout } from '../../lib/async/signal';
import { deletingMessages } from '../../maintenance/retention/deleted-messages';
import { unname } from './chat';
import { eraseFromAreas } from './erase-person';

export interface ChatErasureDeps extends ErasureServices {
  db: Database;
  erasers: readonly Eraser[];
  wakeups: Pick<Wakeups, 'notify'>;
  /** Destroys these keys durably, here and in every backup; returns their number. */
  destroyKeysOf(key_ids: readonly string[]): Promise<number>;
  /** Empties the rows that name a person without keys, by their keyed hash, until `signal` is aborted. Idempotent. */
  eraseNamed(hash: string, signal: AbortSignal): Promise<unknown>;
}

/** Time that the rows that name the persons have; a job empties those of a longer search. */
const NAMED_MS = 5_000;
/** Messages per transaction. */
const TOGETHER = 5_000;
const DELETE_OWN = deletingMessages(
  `
    select account_id, platform, place from platform_chat_messages
    where account_id = $1 and person_key = any($2::uuid[]) order by place limit ${TOGETHER}`,
  { are_erased: true },
);

/**
 * Destroys the persons' keys, deletes the messages by them, takes their names off their counts, and empties the rows
 * that name them, as far as these are found in a few seconds: the rest stays pending for later erasures. Idempotent.
 */
export async function eraseFromChats(deps: ChatErasureDeps, subjects: readonly string[]): Promise<ErasedChats> {
  const { db, subject_keys, wakeups } = deps;
  const key_ids: string[] = [];
  for (const subject of subjects) key_ids.push(...(await subject_keys.keysOf(subject)));
  const hashes = [...(await subject_keys.hashesOf(subjects)).values()];
  await deps.destroyKeysOf(key_ids);
  wakeups.notify('subject-keys');
  const accounts = await db.query<{ account_id: string }>(
    'select distinct account_id from platform_users where person_key = any($1::uuid[]) order by account_id',
    [key_ids],
  );
  let deleted_messages = 0;
  for (const { account_id } of accounts) {
    for (let some = TOGETHER; some === TOGETHER; deleted_messages += some) {
      some = await db.transaction(async (tx) => {
        const [row] = await tx.query<{ count: number }>(DELETE_OWN, [account_id, key_ids]);
        await tx.query('delete from chat_message_counts where account_id = $1 and count = 0', [account_id]);
        return row!.count;
      });
    }
  }
  const erased_profiles = await db.transaction((tx) => unname(tx, key_ids));
  for (const subject of subjects) await eraseFromAreas(deps, personOf(subject));
  await eraseNamedSoon(deps, hashes);
  return { hashes, erased_profiles, deleted_messages, account_ids: accounts.map(({ account_id }) => account_id) };
}

/** The names are still being erased when the answer is due. */
class Late extends Error {}

async function eraseNamedSoon(
  { eraseNamed }: Pick<ChatErasureDeps, 'eraseNamed'>,
  hashes: readonly string[],
): Promise<void> {
  const signal = AbortSignal.timeout(NAMED_MS);
  const erased = async () => {
    for (const hash of hashes) if (!signal.aborted) await eraseNamed(hash, signal);
  };
  try {
    // The job that follows each erasure repeats what is late.
    await withTimeout(erased(), NAMED_MS, () => new Late());
  } catch (error) {
    if (!(error instanceof Late)) throw error;
  }
}

function personOf(subject: string): Person {
  const colon = subject.indexOf(':');
  return { subject, kind: subject.slice(0, colon), id: subject.slice(colon + 1) };
}
