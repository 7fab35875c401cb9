import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECTIONS } from '../../bin/areas';
import { event, events, instant } from '../../kernel/event';
import { sql } from '../../kernel/sql';
import { all, eventProjection, lastPer } from '../../projections/runtime/drive/handlers';
import { z } from 'zod';
import { type TestDatabase, testDatabase } from '../support/database';
import { fingerprintsOf, unraised, type Fingerprints } from '../support/fingerprints';

const ROOT = join(__dirname, '../..');
const FILE = JSON.parse(readFileSync(join(ROOT, 'projections/fingerprints.json'), 'utf8')) as Fingerprints;

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase();
});
afterAll(() => t?.drop());

test('no projection changed what its rows follow from without its version: raise it, then npm run fingerprints', async () => {
  const found = await fingerprintsOf(t.db, PROJECTIONS, ROOT);
  expect(unraised(FILE, found)).toEqual([]);
  expect(FILE).toEqual(found);
});

describe('what counts', () => {
  const NOTES = (at: z.ZodType<string>) =>
    events({ 'note:written': event({ note_id: z.uuid(), at }), 'note:removed': event({ note_id: z.uuid() }) });
  const notes = (set = NOTES(instant()), version = 1, limit = 'e') =>
    eventProjection({
      name: 'notes',
      version,
      tables: ['fingerprinted'],
      events: [set],
      on: {
        'note:written': all(sql`insert into fingerprinted (id, at) select note_id, at from e`),
        'note:removed':
          limit === 'e'
            ? all(sql`delete from fingerprinted n using e where n.id = e.note_id`)
            : lastPer(['note_id'], sql`delete from fingerprinted n using e where n.id = e.note_id`),
      },
    });
  const of = (p = notes()) => fingerprintsOf(t.db, [p], ROOT);
  let before: Fingerprints;
  beforeAll(async () => {
    await t.db.query('create table fingerprinted (id uuid primary key, at timestamptz)');
    before = await of();
  });

  test('a handler, a type of an event and a version that fell do; a version that rose and a new projection are fine', async () => {
    expect(unraised(before, await of())).toEqual([]);
    expect(unraised(before, await of(notes(undefined, 1, 'last')))).toEqual(['notes']);
    expect(unraised(before, await of(notes(NOTES(z.string()))))).toEqual(['notes']);
    expect(unraised(before, await of(notes(NOTES(z.string()), 2)))).toEqual([]);
    expect(unraised(before, await of(notes(undefined, 0)))).toEqual(['notes']);
    expect(unraised({}, await of())).toEqual([]);
  });

  test('a column and a constraint of a table do, an index does not', async () => {
    await t.db.query('create index on fingerprinted (at)');
    expect(unraised(before, await of())).toEqual([]);
    await t.db.query('alter table fingerprinted add unique (at)');
    expect(unraised(before, await of())).toEqual(['notes']);
    await t.db.query('alter table fingerprinted drop constraint fingerprinted_at_key');
    await t.db.query('alter table fingerprinted alter column at type text');
    expect(unraised(before, await of())).toEqual(['notes']);
  });

  test('of a projection of records the text of its file does', async () => {
    const [event_log] = PROJECTIONS.filter(({ name }) => name === 'event-log');
    const found = await fingerprintsOf(t.db, [event_log!], ROOT);
    expect(found['event-log']).toEqual(FILE['event-log']);
    const changed = await fingerprintsOf(t.db, [{ ...event_log!, program: 'another text' }], ROOT);
    expect(unraised(found, changed)).toEqual(['event-log']);
  });
});
