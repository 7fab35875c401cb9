import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { EVENTS, UPCASTERS } from '../../bin/areas';
import { columnsOf } from '../../kernel/columns';
import type { JsonObject } from '../../lib/json/json';
import { versionOf } from '../../kernel/upcasters';
import { broken, type Kept, withNewest } from '../support/event-schemas';
import { assertDeclared, catalogue, event, events, instant, EventSchemaError, subject } from '../../kernel/event';

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
    expect(refuse).toThrow(EventSchemaError);
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
  const folder = join(__dirname, '../../domain');
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  const areas = entries.filter((entry) => entry.isFile());
  const declared = areas.flatMap(({ name: file, parentPath }) => {
    const area = jest.requireActual<Record<string, unknown>>(join(parentPath, file));
    return Object.entries(area).flatMap(([name, value]) =>
      name.endsWith('_EVENTS') && typeof value === 'object' && value !== null && 'declared' in value
        ? Object.keys((value as { declared: object }).declared)
        : [],
    );
  });
  expect(declared.length).toBeGreaterThan(15);
  expect([...EVENTS.keys()].sort()).toEqual(declared.sort());
});

describe('every version that was ever stored', () => {
  const read = (file: string) => JSON.parse(readFileSync(join(__dirname, '../..', file), 'utf8')) as Kept;
  const kept = { schemas: read('docs/operating/schemas/events.json'), samples: read('test/fixtures/events.json') };
  const samples = Object.entries(kept.samples).flatMap(([type, versions]) =>
    Object.entries(versions).map(([version, data]) => [type, version, data] as const),
  );

  test('is kept with its schema and a sample: after a change `npm run events`', () => {
    expect(broken(EVENTS, kept.schemas)).toEqual([]);
    expect(withNewest(EVENTS, kept)).toEqual(kept);
    for (const [type, { version }] of EVENTS) {
      const versions = Array.from({ length: version }, (_, n) => String(n + 1));
      expect([type, Object.keys(kept.schemas[type]!)]).toEqual([type, versions]);
      expect([type, Object.keys(kept.samples[type]!)]).toEqual([type, versions]);
    }
  });

  test.each(samples)('can still be read: %s %s', (type, version, data) => {
    expect(String(versionOf({ type, data }))).toBe(version);
    expect(() => assertDeclared(EVENTS, type, UPCASTERS.read({ type, data }).data)).not.toThrow();
  });

  test('a declaration that changes without a version is found, and so is one that goes', () => {
    const first = withNewest(catalogue([NOTES]), { schemas: {}, samples: {} });
    expect(broken(catalogue([NOTES]), first.schemas)).toEqual([]);
    const changed = events({
      'note:removed': event({ note_id: z.uuid(), by: z.uuid() }, { version: 2, upcast: [(old) => old] }),
    });
    expect(broken(catalogue([changed]), first.schemas)).toEqual([
      'note:removed changed: raise its version and bring an upcaster',
      'note:written was stored and is declared no more',
    ]);
    const raised = events({
      'note:removed': event({ note_id: z.uuid() }, { version: 3, upcast: [(old) => old, (old) => old] }),
    });
    const grown = withNewest(catalogue([raised]), first);
    expect(Object.keys(grown.samples['note:removed']!)).toEqual(['2', '3']);
  });

  test('readers outside meet personal members sealed', () => {
    const personal = { name: subject('user', 'user_id') };
    const guests = events({ 'guest:invited': event({ user_id: z.uuid(), name: z.string().nullable() }, { personal }) });
    const { schemas } = withNewest(catalogue([guests]), { schemas: {}, samples: {} });
    expect(schemas['guest:invited']!['1']).toMatchObject({
      properties: { user_id: { format: 'uuid' }, name: { required: ['$sealed', '$key'] } },
    });
  });
});
