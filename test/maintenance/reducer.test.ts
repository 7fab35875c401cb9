import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type * as reducers from '../../maintenance/archive/reducer';
import { formatPosition } from '../../engines/event-store/kurrentdb/events';
import { placeOfEvent, replayEvents } from '../../maintenance/archive/replay';

// The thread runs compiled files.
const { reduceRecords } = jest.requireActual<typeof reducers>('../../dist/maintenance/archive/reducer');
type ReducedRecord = reducers.ReducedRecord;

const ROOT = join(__dirname, '../..');
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'lumio-reducer-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const reducer = async (name: string, code: string) => {
  const file = join(folder, `${name}.mjs`);
  await writeFile(file, code);
  return file;
};
const record = (place: number, type: string): ReducedRecord => ({
  source: '0',
  place,
  json: JSON.stringify({ offset: place, type }),
});
async function* batches(...all: ReducedRecord[][]) {
  yield* all;
}
const COUNT = `export const initial = {};
export const reduce = (state, { type }) => ({ ...state, [type]: (state[type] ?? 0) + 1 });`;

test('reduces records to a state, and continues from a checkpoint', async () => {
  const file = await reducer('count', COUNT);
  const checkpoint = join(folder, 'count.json');
  const first = batches([record(0, 'a'), record(1, 'b')]);
  expect(JSON.parse(await reduceRecords(first, { file, checkpoint }))).toEqual({ a: 1, b: 1 });
  expect(JSON.parse(await readFile(checkpoint, 'utf8')).places).toEqual({ 0: 2 });
  const again = batches([record(0, 'a'), record(1, 'b')], [record(2, 'a')]);
  expect(JSON.parse(await reduceRecords(again, { file, checkpoint }))).toEqual({ a: 2, b: 1 });
});

test('sees no environment', async () => {
  const file = await reducer('environment', 'export const reduce = () => Object.keys(process.env).length;');
  expect(await reduceRecords(batches([record(0, 'a')]), { file })).toBe('0');
});

test.each([
  ['never ends', 'export const reduce = () => { for (;;); };', 'took more than 500 ms for a batch'],
  ['throws', 'export const reduce = () => { throw new Error("no state"); };', 'the reducer failed: no state'],
  ['is none', 'export const other = 1;', 'exports no function reduce'],
  ['has no file', null, 'the reducer failed: '],
])('a reducer that %s fails, and keeps the last whole batch', async (_what, code, message) => {
  const file = code === null ? join(folder, 'missing.mjs') : await reducer('bad', code);
  const checkpoint = join(folder, 'bad.json');
  const run = reduceRecords(batches([record(0, 'a')]), { file, checkpoint, batch_ms: 500 });
  await expect(run).rejects.toThrow(message);
  await expect(readFile(checkpoint)).rejects.toThrow('ENOENT');
});

describe('the examples', () => {
  const example = (name: string) => join(ROOT, 'docs/reducers', `${name}.mjs`);
  const json = (place: number, value: object): ReducedRecord => ({
    source: 'events',
    place,
    json: JSON.stringify(value),
  });
  const session = (session_id: string, subs: number, retained_viewers: number | null) => ({
    data: {
      session_id,
      figures: {
        streams: [{ category: 'Chess', new_paid_subs: subs, gifted_subs: 1 }],
        received_raids: [{ viewers: 40, retained_viewers }],
      },
    },
  });
  const sessions = () =>
    batches([json(0, session('a', 1, null)), json(1, session('b', 2, 10)), json(2, session('a', 3, 20))]);

  test('count the newest figures of each session', async () => {
    const subs = JSON.parse(await reduceRecords(sessions(), { file: example('subs-per-game') }));
    expect(subs.games).toEqual({ Chess: 7 });
    const raids = JSON.parse(await reduceRecords(sessions(), { file: example('raid-retention') }));
    expect(raids).toMatchObject({ viewers: 80, retained: 30 });
  });

  test('count chat by the minute', async () => {
    const said = ['2026-01-02T03:04:05Z', '2026-01-02T03:04:59Z', '2026-01-02T03:05:00Z'];
    const chat = batches(said.map((occurred_at, place) => json(place, { occurred_at })));
    expect(JSON.parse(await reduceRecords(chat, { file: example('chat-heat') }))).toEqual({
      '2026-01-02T03:04': 2,
      '2026-01-02T03:05': 1,
    });
  });
});

test('positions of KurrentDB have places, so that reducers, ranges and continued exports have their events', async () => {
  const [first, second] = [12n, 40n].map((prepare) => formatPosition({ commit: 50n, prepare }));
  expect([first!, second!, '7'].map(placeOfEvent)).toEqual([12, 40, 7]);
  async function* readAll() {
    const stored = [first, second].map((position) => ({ position, type: 'thing:happened', recorded_at: '2026' }));
    yield { events: stored, position: second };
  }
  const found: string[] = [];
  for await (const batch of replayEvents({ events: { readAll } as never }, { from: { number: 13 } }))
    found.push(...batch.map(({ position }) => position));
  expect(found).toEqual([second]);
});
