import { textArray } from '../engines/postgres/port';
import { createLocalWakeups } from '../engines/wakeups/local';
import { Outbox, type PageBounds } from '../realtime/runtime/outbox';
import { Tail, type TailDeps } from '../realtime/runtime/tail';
import { until } from './contracts/event-store';
import { testDatabase, type TestDatabase } from './support/database';

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase(2);
});
afterAll(() => t.drop());

const write = (data: string) =>
  t.db.query('select outbox_write($1, $2, $3)', [
    textArray(['events:a']),
    textArray(['kick:follower']),
    textArray([data]),
  ]);

test('rows that nobody listens to are passed by; those that came while a channel opened are not', async () => {
  const outbox = new Outbox(t.db, 60_000);
  const wakeups = createLocalWakeups();
  const delivered: string[] = [];
  let heard = false;
  let opens_while_asked = false;
  let asked = 0;
  const watched = {
    tail: (after: number, bounds: PageBounds) => outbox.tail(after, bounds),
    async newest() {
      const newest = await outbox.newest();
      asked += 1;
      if (opens_while_asked) heard = true;
      return newest;
    },
  } as Outbox;
  const quiet = () => undefined;
  const tail = new Tail({
    outbox: watched,
    wakeups,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet, child: quiet } as unknown as TailDeps['log'],
    metrics: { tail_rows: { inc: quiet }, tail_lag: { set: quiet } } as unknown as TailDeps['metrics'],
    deliver: ({ data }) => void delivered.push(data),
    unheard: () => !heard,
    saturated: () => false,
  });
  await tail.ready;
  await write('1');
  const before = asked;
  wakeups.notify('outbox');
  await until(() => asked > before, 'a look at the end');
  await new Promise((resolve) => setTimeout(resolve, 20));
  opens_while_asked = true;
  await write('2');
  wakeups.notify('outbox');
  await until(() => delivered.length > 0, 'the row that came while the channel opened');
  await write('3');
  wakeups.notify('outbox');
  await until(() => delivered.length > 1, 'a row of an open channel');
  expect(delivered).toEqual(['2', '3']);
  await tail.stop();
  await wakeups.close();
});

describe('pages hold so many bytes, whatever the page before held', () => {
  const SMALL = 1_200;
  const LARGE = 40;
  const bytes = 64 * 1024;
  let own: TestDatabase;
  let outbox: Outbox;
  beforeAll(async () => {
    own = await testDatabase(2);
    outbox = new Outbox(own.db, 60_000);
    const data = [
      ...Array<string>(SMALL).fill('"ä"'),
      ...Array<string>(LARGE).fill(JSON.stringify('ä'.repeat(10_000))),
    ];
    await own.db.query('select outbox_write($1, $2, $3)', [
      textArray(data.map(() => 'events:a')),
      textArray(data.map(() => 'kick:follower')),
      textArray(data),
    ]);
  });
  afterAll(() => own.drop());

  test.each([
    ['the tail', (after: number, bounds: PageBounds) => outbox.tail(after, bounds)],
    ['a resume', (after: number, bounds: PageBounds) => outbox.page('events:a', after, bounds)],
  ])('%s', async (_name, read) => {
    const first = await read(0, { messages: 1_000, bytes });
    expect(first).toHaveLength(1_000);
    const sizes: number[] = [];
    for (let after = 1_000; ;) {
      const rows = await read(after, { messages: 1_000, bytes });
      if (rows.length === 0) break;
      expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_row, index) => after + index + 1));
      after = rows.at(-1)!.seq;
      sizes.push(rows.reduce((sum, row) => sum + Buffer.byteLength(row.data), 0));
    }
    // 200 small ones and 4 large, then 4 large each: the row that passes the bound is the last.
    expect(sizes).toEqual([80_808, ...Array<number>(9).fill(80_008)]);
    expect(await read(SMALL, { messages: 1_000, bytes: 1 })).toHaveLength(1);
  });
});
