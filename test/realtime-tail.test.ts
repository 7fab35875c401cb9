import { textArray } from '../engines/postgres/port';
import { createLocalWakeups } from '../engines/wakeups/local';
import { Outbox } from '../realtime/outbox';
import { Tail, type TailDeps } from '../realtime/tail';
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
    tail: (after: number, limit: number) => outbox.tail(after, limit),
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
