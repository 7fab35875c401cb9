import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { testDatabase, type TestDatabase } from '../support/database';

describe('subject keys', () => {
  let target: TestDatabase;
  const wakeups = createLocalWakeups();
  const key = (fill: number) => Buffer.alloc(32, fill).toString('base64');
  const node = (keys = `m1:${key(1)}`) =>
    createSubjectKeys({ db: target.db, master_keys: parseMasterKeys(keys), wakeups });
  beforeAll(async () => {
    target = await testDatabase();
  });
  afterAll(() => target.drop());

  test('racing nodes agree on one key for each subject', async () => {
    const subjects = Array.from({ length: 50 }, (_, n) => `kick:race-${n}`);
    const nodes = Array.from({ length: 6 }, () => node());
    const maps = await Promise.all(nodes.map((keys, n) => keys.forWriting(n % 2 ? subjects : [...subjects].reverse())));
    for (const subject of subjects)
      expect(new Set(maps.map((map) => map.get(subject)!.key.toString('hex'))).size).toBe(1);
    expect(new Set(subjects.map((subject) => maps[0]!.get(subject)!.key_id)).size).toBe(50);
  });

  test('a subject is not named in the database, and its key is wrapped', async () => {
    const { key: clear } = (await node().forWriting(['kick:canary-name'])).get('kick:canary-name')!;
    const dump = JSON.stringify(await target.db.query('select t::text from subject_keys t'));
    expect(dump).not.toContain('canary');
    expect(dump).not.toContain(Buffer.from('canary').toString('hex'));
    expect(dump).not.toContain(clear.toString('base64url'));
    expect(dump).not.toContain(clear.toString('hex'));
  });

  test('another node reads what one wrote, also after the master key was rotated', async () => {
    const written = (await node().forWriting(['kick:rotated'])).get('kick:rotated')!;
    const rotated = node(`m2:${key(2)},m1:${key(1)}`);
    expect((await rotated.forReading([written.key_id])).get(written.key_id)).toEqual(written.key);
    expect((await rotated.forWriting(['kick:rotated'])).get('kick:rotated')!.key_id).toBe(written.key_id);
  });

  test('an erased key is gone on every node, and the subject gets a new one', async () => {
    const [one, two] = [node(), node()];
    const old = (await one.forWriting(['kick:gone'])).get('kick:gone')!;
    expect((await two.forWriting(['kick:gone'])).get('kick:gone')!.key_id).toBe(old.key_id);
    expect(await one.erase('kick:gone')).toBe(1);
    expect(await one.erase('kick:gone')).toBe(0);
    // The wake-up is delivered in the next turn.
    await new Promise((resume) => setImmediate(resume));
    for (const keys of [one, two]) expect(await keys.forReading([old.key_id])).toEqual(new Map());
    const fresh = (await two.forWriting(['kick:gone'])).get('kick:gone')!;
    expect(fresh.key_id).not.toBe(old.key_id);
    expect((await one.forReading([fresh.key_id])).get(fresh.key_id)).toEqual(fresh.key);
  });

  test('nobody uses an erased key while it is still asked which were erased', async () => {
    const [a, b] = [node(), createSubjectKeys({ db: target.db, master_keys: parseMasterKeys(`m1:${key(1)}`) })];
    const first = (await a.forWriting(['kick:gone'])).get('kick:gone')!;
    expect((await b.forReading([first.key_id])).size).toBe(1);
    expect(await a.erase('kick:gone')).toBe(1);
    const now = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 6_000);
    try {
      const read = await Promise.all([b.forReading([first.key_id]), b.forReading([first.key_id])]);
      expect(read.map(({ size }) => size)).toEqual([0, 0]);
    } finally {
      now.mockRestore();
    }
  });

  test('keys are at hand once they were asked for, until any of them may have been erased', async () => {
    const [one, two] = [node(), node()];
    const both = ['kick:at-hand', 'kick:beside'];
    // No matter how long the statements take.
    const now = jest.spyOn(Date, 'now').mockReturnValue(Date.now());
    try {
      expect(one.atHand!(['kick:at-hand'])).toBeUndefined();
      const made = await one.forWriting(both);
      expect(one.atHand!(both)).toEqual(made);
      expect(one.atHand!([...both, 'kick:nobody-yet'])).toBeUndefined();
      await two.erase('kick:at-hand');
      // The wake-up is delivered in the next turn.
      await new Promise((resume) => setImmediate(resume));
      expect(one.atHand!(['kick:beside'])).toBeUndefined();
      const asked = one.forWriting(['kick:beside']);
      // While the answer is not there.
      expect(one.atHand!(['kick:beside'])).toBeUndefined();
      const kept = await asked;
      expect(one.atHand!(['kick:beside'])).toEqual(kept);
      expect(one.atHand!(['kick:at-hand'])).toBeUndefined();
    } finally {
      now.mockRestore();
    }
  });

  test('an answer that was under way during an erasure does not bring the key back', async () => {
    let answered = (): void => undefined;
    let hold: Promise<void> | undefined;
    // The database's answer to a key request reaches this node late.
    const db = new Proxy(target.db, {
      get(on, member) {
        if (member !== 'query') return Reflect.get(on, member).bind?.(on) ?? Reflect.get(on, member);
        return async (text: string, values?: unknown[], name?: string) => {
          const rows = await on.query(text, values, name);
          if (name?.startsWith('subject-keys') && hold) {
            answered();
            await hold;
          }
          return rows;
        };
      },
    });
    const keys = createSubjectKeys({ db, master_keys: parseMasterKeys(`m1:${key(1)}`) });
    const old = (await node().forWriting(['kick:late'])).get('kick:late')!;
    let release = (): void => undefined;
    hold = new Promise((resume) => (release = resume));
    const asked = new Promise<void>((resume) => (answered = resume));
    const late = keys.forWriting(['kick:late']);
    await asked;
    expect(await keys.erase('kick:late')).toBe(1);
    hold = undefined;
    release();
    expect((await late).get('kick:late')!.key_id).not.toBe(old.key_id);
    expect(await keys.forReading([old.key_id])).toEqual(new Map());
  });
});
