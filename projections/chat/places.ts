import { PLATFORMS } from '../../domain/common/vendors';
import { textArray, type Queryable } from '../../engines/postgres/port';

interface Placed {
  account_id: string;
  place: number;
}

/** Width of the ranges that are read, in microseconds: platforms with times in seconds fill some hundred. */
const SPAN = 1_000;
/** By lateral reads in the order of the keys, so that no plan reads more than the ranges. */
const TAKEN = `
  select a.account_id, t.place from (select unnest($1::text[])::uuid as account_id, unnest($2::bigint[]) as place) a
    cross join lateral (
      select m.place from unnest('{${PLATFORMS.join()}}'::text[]) of_platform (platform) cross join lateral (
        select place from platform_chat_messages
        where account_id = a.account_id and platform = of_platform.platform
          and place >= a.place and place < a.place + ${SPAN} order by place limit ${SPAN}) m
      union all (
        select place from moderation_log
        where account_id = a.account_id and place >= a.place and place < a.place + ${SPAN} order by place limit ${SPAN})
    ) t`;

/**
 * Raises each place to the next free one of its account, so that pages neither repeat nor pass over a row.
 * @param heads the highest stored place of each account: all above it are free
 */
export async function separate(
  entries: readonly Placed[],
  heads: ReadonlyMap<string, number>,
  tx: Queryable,
): Promise<void> {
  const taken = new Map<string, Set<number>>();
  const keep = ({ account_id, place }: Placed) => {
    const places = taken.get(account_id);
    if (places === undefined) taken.set(account_id, new Set([place]));
    else places.add(place);
  };
  const isStored = ({ account_id, place }: Placed) => place <= (heads.get(account_id) ?? -Infinity);
  const read = async (asked: readonly Placed[]) => {
    if (asked.length === 0) return;
    const values = [textArray(asked.map(({ account_id }) => account_id)), asked.map(({ place }) => place)];
    for (const row of await tx.query<{ account_id: string; place: number }>(TAKEN, values, 'chat-places'))
      keep({ account_id: row.account_id, place: Number(row.place) });
  };
  await read(entries.filter(isStored));
  for (const entry of entries) {
    let known_to = entry.place + SPAN;
    while (taken.get(entry.account_id)?.has(entry.place)) {
      entry.place += 1;
      if (entry.place < known_to || !isStored(entry)) continue;
      await read([entry]);
      known_to += SPAN;
    }
    keep(entry);
  }
}
