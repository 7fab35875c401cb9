import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { EVENTS, UPCASTERS } from '../bin/areas';
import { columnsOf } from '../kernel/columns';
import type { JsonObject } from '../kernel/json';
import { assertDeclared, catalogue, event, events, instant, InvalidEvent, subject } from '../kernel/event';

const NOTES = events({
  'note:written': event({
    note_id: z.uuid(),
    author: z.string().nullable(),
    tags: z.array(z.string()),
    parts: z.array(z.object({ text: z.string() })),
    stars: z.int(),
    weight: z.number(),
    kind: z.enum(['plain', 'rich']),
    shown: z.boolean(),
    written_at: instant(),
  }),
  'note:removed': event({ note_id: z.uuid() }, { version: 2, upcast: [({ why: _why, ...rest }) => rest] }),
});
const removed = { note_id: '01890a5d-ac96-774b-bcce-b302099a8057' };

test('the columns of a recordset are the members in their declared types', () => {
  expect(columnsOf(NOTES.declared['note:written'])).toBe(
    'note_id uuid, author text, tags text[], parts jsonb, stars bigint, weight double precision, kind text, ' +
      'shown boolean, written_at timestamptz',
  );
});

test('data are held against their declaration, and a refusal names members, never values', () => {
  const all = catalogue([NOTES]);
  expect(() => assertDeclared(all, 'note:removed', removed)).not.toThrow();
  const refused: [string, JsonObject, string][] = [
    ['note:removed', {}, 'note:removed: does not fit its declaration: note_id (invalid_type)'],
    ['note:removed', { note_id: 'secret' }, 'note:removed: does not fit its declaration: note_id (invalid_format)'],
    ['note:removed', { ...removed, why: 'x' }, 'the event (unrecognized_keys)'],
    ['note:read', removed, 'note:read: no area declares this type'],
  ];
  for (const [type, data, message] of refused) {
    const refuse = () => assertDeclared(all, type, data);
    expect(refuse).toThrow(InvalidEvent);
    expect(refuse).toThrow(message);
    expect(refuse).not.toThrow('secret');
  }
});

test('a declaration that cannot hold is refused where it stands', () => {
  expect(() => event({}, { version: 3, upcast: [(data) => data] })).toThrow('needs 2 upcasters, there are 1');
  expect(() => events({ NoteWritten: event({}) })).toThrow('subject:past_or_noun');
  expect(() => catalogue([NOTES, NOTES])).toThrow('note:written is declared twice');
  const personal = { name: subject('user', 'user_id') };
  expect(() => event({ user_id: z.uuid(), name: z.string() }, { personal })).toThrow('declare it nullable');
  expect(() => event({ user_id: z.uuid() }, { personal })).toThrow('personal member name is not declared');
});

test('every area that declares events is in the catalogue', () => {
  const folder = join(__dirname, '../domain');
  const declared = readdirSync(folder).flatMap((file) => {
    const area = jest.requireActual<Record<string, unknown>>(join(folder, file));
    return Object.entries(area).flatMap(([name, value]) =>
      name.endsWith('_EVENTS') && typeof value === 'object' && value !== null && 'declared' in value
        ? Object.keys((value as { declared: object }).declared)
        : [],
    );
  });
  expect(declared.length).toBeGreaterThan(15);
  expect([...EVENTS.keys()].sort()).toEqual(declared.sort());
});

describe('every version that was ever stored can still be read', () => {
  const id = '01890a5d-ac96-774b-bcce-b302099a8057';
  const at = '2026-01-01T00:00:00.000Z';
  /** One stored event of each version but the newest, as the program of its time stored it. */
  const STORED: Record<string, JsonObject[]> = {
    'user:registered': [{ user_id: id, display_name: 'Ada', avatar_url: null, registered_at: at }],
  };

  test('an example of each older version is here', () => {
    const older = [...EVENTS].flatMap(([type, { version }]) => (version > 1 ? [[type, version - 1]] : []));
    expect(Object.entries(STORED).map(([type, examples]) => [type, examples.length])).toEqual(older);
  });

  test.each(Object.entries(STORED))('%s', (type, examples) => {
    examples.forEach((data, index) => {
      const stored = { type, data: index === 0 ? data : { ...data, $v: index + 1 } };
      expect(() => assertDeclared(EVENTS, type, UPCASTERS.read(stored).data)).not.toThrow();
    });
  });
});
