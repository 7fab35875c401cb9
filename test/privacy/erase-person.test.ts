import pg from 'pg';
import { ERASERS } from '../../bin/upkeep/erasers';
import { stepProgress } from '../../cli/runtime/progress';
import { TOPICS } from '../../domain/common/records';
import type { Blobs } from '../../engines/blobs/port';
import { createParkedWebhooks } from '../../ingest/runtime/parked/parked';
import { othersRun } from '../../engines/postgres/other-processes';
import { erasePerson, type PersonErasureDeps } from '../../privacy/erasure/erase-person';
import { eventLogEraser } from '../../privacy/erasure/events';
import { createPersonalTexts } from '../../privacy/subject-keys/texts';
import { destroyKeys } from '../../privacy/subject-keys/transfer';
import type { TestDatabase } from '../support/database';
import { blobsOfEach, enginesOfEach } from '../support/each';
import { ACCOUNTS, type Engines, record } from '../support/projections';

let t: TestDatabase;
let on: Engines;
let blobs: Blobs;
enginesOfEach((database, embedded) => ([t, on] = [database, embedded]));
blobsOfEach((opened) => (blobs = opened));

const erase = (subject: string, options: Partial<PersonErasureDeps> = {}) => {
  const [kind, id] = subject.split(':') as [string, string];
  const deps = {
    ...on,
    db: t.db,
    blobs,
    texts: createPersonalTexts(on.subject_keys),
    stored_events: on.events,
    erasers: ERASERS,
    record_erasers: [eventLogEraser],
    isUser: async () => false,
    destroyKeys: (of: string) => destroyKeys({ blobs, subject_keys: on.subject_keys }, of),
    othersRun: async () => false,
    // Longer than the test: an erasure that waits without another process does not end.
    keys_cached_ms: 3_600_000,
    ...options,
  };
  return erasePerson(deps, { subject, kind, id });
};
const notes = async () => {
  const keys: string[] = [];
  for await (const key of blobs.keys('')) keys.push(key);
  return keys;
};

test.each(['kick:000000000001', 'user:0190a1b2-0000-7000-8000-000000000000'])(
  '%s, whom nothing names, is refused, and nothing is changed',
  async (subject) => {
    await expect(erase(subject)).rejects.toThrow(`nothing is stored about ${subject}: check the id`);
    await expect(erase(subject)).rejects.toThrow(`nothing is stored about ${subject}: check the id`);
    expect(await notes()).toEqual([]);
  },
);

test('an erasure is repeated: of one named by a key alone, by a record, by a parked webhook, and of a user', async () => {
  await on.subject_keys.forWriting(['kick:9']);
  expect((await erase('kick:9')).join(', ')).toMatch(/^1 keys destroyed, 0 records/);
  expect(await erase('kick:9')).toEqual([]);

  const raw = JSON.stringify({ follower: { user_id: 7 } });
  const follow = { ...record(ACCOUNTS[0]!, ''), subject: 'kick:7', raw };
  await on.records.append(TOPICS.platform_events, [follow]);
  // As an erasure by a moderator, which leaves no note of the person.
  await on.subject_keys.erase('kick:7');
  expect((await erase('kick:7')).join(', ')).toMatch(/^0 keys destroyed, 1 records/);
  expect((await erase('kick:7')).join(', ')).toMatch(/^0 keys destroyed, 1 records/);

  await createParkedWebhooks({ db: t.db, texts: createPersonalTexts(on.subject_keys) }).park({
    vendor: 'kick',
    reason: 'bad_json',
    detail: '',
    headers: {},
    raw_body: Buffer.from('{"user_id": 123'),
    trace: null,
    received_at: Date.now(),
  });
  expect(await erase('kick:123')).toEqual(['1 parked webhooks deleted']);
  expect(await erase('kick:123')).toEqual([]);

  const user_id = '0190a1b2-0000-7000-8000-000000000001';
  await t.db.query(`insert into profiles (user_id, display_name) values ($1, 'Ada')`, [user_id]);
  expect(await erase(`user:${user_id}`)).toEqual(['profile erased']);
  expect(await erase(`user:${user_id}`, { isUser: async () => true })).toEqual([]);
});

test('an erasure that ended after the keys were destroyed is resumed', async () => {
  await on.subject_keys.forWriting(['kick:9']);
  const interrupted = async (subject: string) => {
    await on.subject_keys.erase(subject);
    throw new Error('the database is gone');
  };
  await expect(erase('kick:9', { destroyKeys: interrupted })).rejects.toThrow('the database is gone');
  expect(await erase('kick:9')).toEqual([]);
});

test('it waits for other processes, with a line on stderr once a step lasts', async () => {
  await on.subject_keys.forWriting(['kick:9']);
  const steps: string[] = [];
  await erase('kick:9', {
    othersRun: async () => true,
    keys_cached_ms: 0,
    onProgress: ({ what }) => void steps.push(what),
  });
  expect(steps).toContain('waiting until no process holds the keys in memory');

  const printed = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  jest.useFakeTimers();
  try {
    const { update, stop } = stepProgress('erasing kick:9');
    update({ done: 0, total: 0, what: 'records of platform-events' });
    update({ done: 0, total: 0, what: 'waiting' });
    expect(printed).not.toHaveBeenCalled();
    jest.advanceTimersByTime(2_000);
    expect(printed.mock.calls).toEqual([['lumio: erasing kick:9: waiting\n']]);
    stop();
  } finally {
    jest.useRealTimers();
    printed.mockRestore();
  }
});

test('sessions of this command alone are no other process; a server and another command are', async () => {
  const open = async (application_name: string) => {
    const client = new pg.Client({ connectionString: t.url, application_name });
    await client.connect();
    return client;
  };
  // The sessions of the test itself have the name of a command.
  const own = () => othersRun(t.db, 'test');
  const clients = [await open('lumio wakeup link'), await open('psql')];
  try {
    expect(await own()).toBe(false);
    clients.push(await open('lumio wakeup link'));
    expect(await own()).toBe(true);
    await clients.pop()!.end();
    clients.push(await open('lumio main'));
    expect(await own()).toBe(true);
  } finally {
    for (const client of clients) await client.end();
  }
});
