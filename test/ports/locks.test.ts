import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LOCK_PAIRS, LockLost, LOCKS, LockTaken } from '../../engines/locks/port';
import { type TestDatabase, testDatabase } from '../support/database';
import { until } from '../support/projections';

const ROOMS =
  'access api bin commands domain engines ingest kernel maintenance migrations projections read-api realtime'.split(
    ' ',
  );
const root = join(__dirname, '../..');
const files = ROOMS.flatMap((room) =>
  readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => `${room}/${file}`),
);
const numbersIn = (text: string) => (text.match(/\b7_?070_?\d{3}\b/g) ?? []).map((n) => Number(n.replaceAll('_', '')));

describe('numbers of advisory locks', () => {
  test('each is given once, and nowhere but in the list and in steps of the schema', () => {
    expect(files.length).toBeGreaterThan(100);
    for (const list of [LOCKS, LOCK_PAIRS]) {
      const numbers = Object.values(list);
      expect([...new Set(numbers)]).toEqual(numbers);
    }
    const known = new Set<number>([...Object.values(LOCKS), ...Object.values(LOCK_PAIRS)]);
    const elsewhere: string[] = [];
    const used = new Set<number>();
    for (const file of files) {
      if (file === 'engines/locks/port.ts') continue;
      for (const number of numbersIn(readFileSync(join(root, file), 'utf8'))) {
        if (!file.startsWith('migrations/') || !known.has(number)) elsewhere.push(`${file}: ${number}`);
        used.add(number);
      }
    }
    expect(elsewhere).toEqual([]);
    // The search finds what is there.
    for (const number of [LOCKS.event_order, LOCK_PAIRS.broker_group, LOCKS.outbox_order])
      expect(used).toContain(number);
  });

  test('no lock is asked for by a number of another shape', () => {
    const strange = files.filter((file) =>
      /pg_(?:try_)?advisory\w*lock\w*\(\s*(?!7070\d{3}\b)\d/.test(readFileSync(join(root, file), 'utf8')),
    );
    expect(strange).toEqual([]);
  });
});

describe('a lock on a connection of its own', () => {
  let t: TestDatabase;
  beforeAll(async () => (t = await testDatabase(4)));
  afterAll(() => t.drop());
  const holders = async () =>
    t.db.query<{ pid: number; state: string; xact_start: string | null }>(
      `select pid, state, xact_start from pg_stat_activity
       where application_name = 'lumio lock' and datname = current_database()`,
    );
  const pair = { pair: LOCK_PAIRS.rebuild, name: 'negative or not' };

  test.each([
    ['one number', LOCKS.archiver],
    ['a number and a name', pair],
  ])('of %s: held by one, free when the work is done, in no transaction', async (_, lock) => {
    const result = await t.db.hold(lock, async (held) => {
      await expect(t.db.hold(lock, async () => undefined)).rejects.toThrow(LockTaken);
      expect(await t.db.transaction((tx) => held.stillHeld(tx))).toBe(true);
      await until(async () => (await holders()).length === 1);
      expect(await holders()).toMatchObject([{ state: 'idle', xact_start: null }]);
      return 'done';
    });
    expect(result).toBe('done');
    await until(() => t.db.hold(lock, async () => true).catch(() => false));
  });

  test('work that fails gives it back', async () => {
    const failing = t.db.hold(pair, () => Promise.reject(new Error('no')));
    await expect(failing).rejects.toThrow('no');
    await until(() => t.db.hold(pair, async () => true).catch(() => false));
  });

  test('ended from outside it is lost at once, and known to be lost even before the news came', async () => {
    await t.db.hold(pair, async (held) => {
      await t.db.transaction(async (tx) => {
        const [holder] = await holders();
        await tx.query('select pg_terminate_backend($1, 10000)', [holder!.pid]);
        expect(await held.stillHeld(tx)).toBe(false);
      });
      await until(() => held.signal.aborted);
      expect(held.signal.reason).toBeInstanceOf(LockLost);
      // Another one takes it meanwhile: that one's is not ours.
      await t.db.hold(pair, () => t.db.transaction(async (tx) => expect(await held.stillHeld(tx)).toBe(false)));
    });
  });
});
