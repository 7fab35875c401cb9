import { v4 } from 'uuid';
import { domainEvents } from '../../kernel/projection';
import { createBehind } from '../../projections/runtime/status/behind';
import { type TestDatabase, testDatabase } from '../support/database';
import { type Engines, engines } from '../support/projections';

let t: TestDatabase;
let on: Engines;
beforeEach(async () => {
  t = await testDatabase(4);
  on = await engines(t.db);
});
afterEach(async () => {
  await on.close();
  await t.drop();
});

const happen = async (type: string) => {
  const written = [{ stream: 'thing-1', expected: 'any' as const, events: [{ id: v4(), type, data: {} }] }];
  return (await on.events.append(written, {})).position;
};
const passed = (position: string) =>
  t.db.query(
    `insert into checkpoints (projection, source, partition, engine, version, position)
     values ('things', 'domain-events', 0, $1, 1, $2)
     on conflict (projection, source, partition) do update set position = excluded.position`,
    [on.events.id, position],
  );

test('a read model is behind while its checkpoint has not passed the events of its types', async () => {
  let now = 0;
  const behind = createBehind({ ...on, db: t.db }, { name: 'things', from: domainEvents(['thing:made']) }, () => now);
  const later = () => {
    now += 1_000;
    return behind();
  };
  expect(await behind()).toBe(false);
  await happen('other:made');
  expect(await later()).toBe(false);
  const made = await happen('thing:made');
  // Shared with the look before.
  expect(await behind()).toBe(false);
  expect(await later()).toBe(true);
  await passed(made);
  await happen('other:made');
  expect(await later()).toBe(false);
  await happen('thing:made');
  expect(await later()).toBe(true);
});
