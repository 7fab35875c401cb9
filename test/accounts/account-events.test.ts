import { v7 as uuid } from 'uuid';
import { attributedEventStore } from '../../engines/event-store/decorators/attributed';
import type { EventStore } from '../../engines/event-store/port';
import { type AccountPlace, PlacesRebuilt, replayAccount } from '../../maintenance/archive/replay';
import { accountEvents } from '../../projections/accounts/account-events';
import { rebuild } from '../../projections/runtime/rebuild/rebuild';
import type { TestDatabase } from '../support/database';
import { enginesOfEach } from '../support/each';
import { type Engines, runtimeOf, until } from '../support/projections';

const projection = accountEvents(['x:happened', 'y:happened']);
const [one, other] = [uuid(), uuid()];
let t: TestDatabase;
let on: Engines;
let store: EventStore;
enginesOfEach((database, embedded) => {
  [t, on] = [database, embedded];
  store = attributedEventStore(on.events);
});

let last: AccountPlace;
async function replayed(account: string, types: string[] = [], after?: AccountPlace): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const batch of replayAccount({ events: store, db: t.db }, { account, types, ...(after && { after }) })) {
    found.push(...batch.map(({ event }) => event.data['n']));
    last = batch.at(-1)?.place ?? last;
  }
  return found;
}
const stored = async () => Number((await t.db.query('select count(*) as n from account_events'))[0]!['n']);

test('the events of an account are found in commit order, whatever streams they are in, and after a rebuild', async () => {
  const runtime = runtimeOf(t.db, on, [projection]);
  await runtime.start();
  // Pages of both accounts by turns, over two streams each.
  for (let n = 0; n < 1300; n += 1) {
    const account_id = n % 2 === 0 ? one : other;
    const event = { id: uuid(), type: n % 3 === 0 ? 'x:happened' : 'y:happened', data: { n, account_id } };
    await store.append([{ stream: `${n % 4}-${account_id}`, expected: 'any', events: [event] }], {});
  }
  await store.append(
    [{ stream: 'users', expected: 'none', events: [{ id: uuid(), type: 'x:happened', data: {} }] }],
    {},
  );
  await until(async () => (await stored()) === 1301);
  const even = Array.from({ length: 650 }, (_, n) => 2 * n);
  expect(await replayed(one)).toEqual(even);
  expect(await replayed(other, ['x:happened'])).toEqual(even.map((n) => n + 1).filter((n) => n % 3 === 0));
  expect(await replayed('global')).toEqual([undefined]);
  expect(await replayed(uuid())).toEqual([]);
  await runtime.stop();

  await replayed(one);
  const place = last;
  // A place that no event has: a later page is behind it.
  await t.db.query('update account_events set place = default where account_id = $1 and place = $2', [
    ...[one, place.place],
  ]);
  await expect(replayed(one, [], place)).rejects.toThrow(PlacesRebuilt);
  await rebuild({ db: t.db, ...on, projections: [projection], name: projection.name });
  expect(await replayed(one)).toEqual(even);
  await expect(replayed(one, [], { ...last, revision: last.revision - 1 })).rejects.toThrow(PlacesRebuilt);

  // An event whose dead letter is retried comes behind a replay that has ended.
  const [letter] = await t.db.query(
    `delete from account_events where account_id = $1 and type = 'x:happened' and place < $2
     returning account_id, stream, revision, position, type`,
    [one, 20],
  );
  const before = last;
  expect(await replayed(one, [], before)).toEqual([]);
  await t.db.query(
    'insert into account_events (account_id, stream, revision, position, type) values ($1, $2, $3, $4, $5)',
    Object.values(letter!),
  );
  expect(await replayed(one, [], before)).toHaveLength(1);
});
