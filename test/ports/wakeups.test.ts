import pg from 'pg';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { createPostgresWakeups } from '../../engines/wakeups/postgres';
import type { Wakeups } from '../../engines/wakeups/port';
import { until } from '../contracts/event-store';
import { testDatabase, type TestDatabase } from '../support/database';
import { silenceableLink } from '../support/link';

const counting = (wakeups: Wakeups, name: string) => {
  const count = { calls: 0, elsewhere: 0, end: () => undefined as void };
  count.end = wakeups.on(name, (elsewhere) => {
    count.calls += 1;
    if (elsewhere) count.elsewhere += 1;
  });
  return count;
};

test('local wake-ups reach every listener of the name, coalesced, until it leaves', async () => {
  const wakeups = createLocalWakeups();
  const first = counting(wakeups, 'a');
  const second = counting(wakeups, 'a');
  const other = counting(wakeups, 'b');
  for (let n = 0; n < 100; n += 1) wakeups.notify('a');
  await until(() => first.calls > 0, 'the wake-up');
  expect([first.calls, second.calls, other.calls]).toEqual([1, 1, 0]);
  expect(first.elsewhere).toBe(0);
  first.end();
  wakeups.notify('a');
  await until(() => second.calls === 2, 'the second wake-up');
  expect(first.calls).toBe(1);
  await wakeups.close();
});

describe('wake-ups through PostgreSQL', () => {
  let t: TestDatabase;
  beforeAll(async () => {
    t = await testDatabase(2);
  });
  afterAll(() => t.drop());

  const listeners = async () =>
    (
      await t.db.query(
        "select pid from pg_stat_activity where datname = current_database() and application_name = 'lumio wakeup link'",
      )
    ).map((row) => row['pid'] as number);

  test('another process is woken, few times for many notifications', async () => {
    const a = createPostgresWakeups({ url: t.url, coalesce_ms: 50 });
    const b = createPostgresWakeups({ url: t.url });
    await until(async () => (await listeners()).length === 2, 'both links');
    const here = counting(a, 'topic:x');
    const there = counting(b, 'topic:x');
    await until(() => {
      a.notify('topic:x');
      return there.calls > 0;
    }, 'the other process');
    const [before, now] = [there.calls, Date.now()];
    for (let n = 0; n < 20; n += 1) {
      a.notify('topic:x');
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(here.calls).toBeGreaterThanOrEqual(20);
    await until(() => there.calls > before, 'the last notification');
    expect(there.elsewhere).toBe(there.calls);
    expect(there.calls - before).toBeLessThanOrEqual(2 + (Date.now() - now) / 50);
    await a.close();
    await b.close();
  });

  test('a wall clock that is set back holds no notification', async () => {
    const a = createPostgresWakeups({ url: t.url });
    const b = createPostgresWakeups({ url: t.url });
    const ear = new pg.Client({ connectionString: t.url });
    await ear.connect();
    await ear.query('listen lumio_wakeups');
    const heard: string[] = [];
    ear.on('notification', ({ payload = '' }) => void heard.push(payload.slice(payload.indexOf(' ') + 1)));
    await until(() => {
      a.notify('first');
      return heard.includes('first');
    }, 'a notification');
    const ahead = Date.now() + 3_600_000;
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => ahead);
    const began = performance.now();
    // Again and again, because a process sends nothing until the link of the other one has greeted it.
    await until(() => {
      a.notify('before');
      return heard.includes('before') || performance.now() - began > 5000;
    }, 'a notification before the clock is set back');
    clock.mockRestore();
    a.notify('after');
    await until(() => heard.includes('after') || performance.now() - began > 5000, 'a notification');
    await Promise.all([ear.end(), a.close(), b.close()]);
    expect(heard).toEqual(expect.arrayContaining(['before', 'after']));
  });

  test('a process alone sends nothing, and whoever comes later is woken from its first moment on', async () => {
    const a = createPostgresWakeups({ url: t.url, keepalive_ms: 100 });
    const ear = new pg.Client({ connectionString: t.url });
    await ear.connect();
    await ear.query('listen lumio_wakeups');
    const heard: string[] = [];
    ear.on('notification', ({ payload = '' }) => void heard.push(payload.slice(payload.indexOf(' ') + 1)));
    await until(async () => (await listeners()).length === 1, 'the link');
    await until(async () => {
      const before = heard.length;
      a.notify('events');
      await new Promise((resolve) => setTimeout(resolve, 50));
      return heard.length === before;
    }, 'silence');
    const b = createPostgresWakeups({ url: t.url, keepalive_ms: 100 });
    const on_b = counting(b, 'events');
    await until(() => heard.includes('!'), 'the answer to the greeting');
    await until(() => on_b.calls > 0, 'the wake-up upon the greeting');
    const calls = on_b.calls;
    a.notify('events');
    await until(() => on_b.calls > calls, 'a wake-up');
    await b.close();
    await until(async () => {
      const before = heard.length;
      a.notify('events');
      await new Promise((resolve) => setTimeout(resolve, 50));
      return heard.length === before;
    }, 'silence again');
    await ear.end();
    await a.close();
  });

  test('a cut link is renewed, everyone is woken, and what was notified meanwhile goes out', async () => {
    const a = createPostgresWakeups({ url: t.url });
    const b = createPostgresWakeups({ url: t.url });
    await until(async () => (await listeners()).length === 2, 'both links');
    const on_b = counting(b, 'events');
    const old = await listeners();
    await t.db.query('select pg_terminate_backend(pid) from unnest($1::int[]) pid', [old]);
    a.notify('events');
    await until(() => on_b.calls > 0, 'the wake-up');
    await until(async () => (await listeners()).filter((pid) => !old.includes(pid)).length === 2, 'new links');
    const calls = on_b.calls;
    await until(() => {
      a.notify('events');
      return on_b.calls > calls;
    }, 'a wake-up over the new links');
    await a.close();
    await b.close();
  });

  test('a link that goes silent without closing is noticed and renewed', async () => {
    const link = await silenceableLink(t.url);
    const a = createPostgresWakeups({ url: t.url });
    const b = createPostgresWakeups({ url: link.url, keepalive_ms: 200 });
    const on_b = counting(b, 'events');
    await until(() => {
      a.notify('events');
      return on_b.calls > 1;
    }, 'the first wake-ups');
    link.silence();
    const calls = on_b.calls;
    await until(() => {
      a.notify('events');
      return on_b.calls > calls + 1;
    }, 'wake-ups after the silence');
    await a.close();
    await b.close();
    link.close();
  });
});
