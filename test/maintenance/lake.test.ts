import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { TOPICS } from '../../domain/common/records';
import { openPlainFiles } from '../../engines/blobs/plain-files';
import type { PlainFiles } from '../../engines/blobs/port';
import { expireLake, type LakeDeps, writeLake } from '../../maintenance/lake/lake';
import { sortedByAccount } from '../../maintenance/lake/sorted-rows';
import { indexTopic } from '../../maintenance/archive/subject-index';
import { eventLogEraser } from '../../privacy/erasure/events';
import { eraseSubject } from '../../privacy/erasure/erasure';
import type { TestDatabase } from '../support/database';
import { enginesOfEach } from '../support/each';
import { ACCOUNTS, type Engines, record } from '../support/projections';

let t: TestDatabase;
let on: Engines;
let folder: string;
let store: PlainFiles;
enginesOfEach(async (database, embedded) => {
  [t, on] = [database, embedded];
  folder = await mkdtemp(join(tmpdir(), 'lake-test-'));
  store = await openPlainFiles(pathToFileURL(folder).href);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const { signal } = new AbortController();
/** Time at which the current hour is closed. */
const later = () => Date.now() + 2 * 3_600_000;
const write = (more: Partial<LakeDeps> = {}) =>
  writeLake({ db: t.db, ...on, store, persons: 'hash', format: 'ndjson', now: later(), ...more }, signal);
const files = async () =>
  (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.ndjson')).sort();
const rows = async () => {
  const texts = await Promise.all((await files()).map((name) => readFile(join(folder, name), 'utf8')));
  return texts.map((text) =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>),
  );
};
const said = (account: number, name: string) => ({
  ...record(ACCOUNTS[account]!, ''),
  subject: 'kick:7',
  raw: JSON.stringify({ follower: { user_id: 7, name } }),
});
const ids = async () => (await rows()).flat().map(({ id }) => id);

test('closed hours are added to the file of their day, each record once, accounts in order', async () => {
  const first = [said(3, 'a'), said(1, 'b'), said(3, 'c')];
  await on.records.append(TOPICS.platform_events, first);
  expect(await write({ now: Date.now() })).toBe(0);
  expect(await files()).toEqual([]);
  await write();
  const before = await files();
  expect(before[0]).toMatch(/platform-events\/\d{4}-\d\d-\d\d\/platform-events-\d{4}-\d\d-\d\d-\d+\.ndjson$/);
  const more = [said(1, 'd'), said(2, 'e')];
  await on.records.append(TOPICS.platform_events, more);
  await write();
  expect(await files()).toEqual(expect.arrayContaining(before));
  expect((await ids()).sort()).toEqual([...first, ...more].map(({ id }) => id).sort());
  for (const file of await rows()) {
    const accounts = file.map(({ account_id }) => String(account_id));
    expect(accounts).toEqual([...accounts].sort());
    expect(file.every((row) => !('raw' in row))).toBe(true);
  }
  expect(await write()).toBe(0);
});

test('a file whose write was cut off is written again', async () => {
  await on.records.append(TOPICS.platform_events, [said(1, 'a')]);
  const broken = { ...store, put: () => Promise.reject(new Error('killed')) };
  await expect(write({ store: broken })).rejects.toThrow('killed');
  expect(await files()).toEqual([]);
  expect(await write()).toBe(1);
  expect(await ids()).toHaveLength(1);
});

test('a file that cannot be written delays no other', async () => {
  await on.records.append(TOPICS.chat_events, [said(1, 'a')]);
  await on.records.append(TOPICS.platform_events, [said(1, 'b')]);
  const put: PlainFiles['put'] = (key, content) =>
    key.includes(TOPICS.chat_events) ? Promise.reject(new Error('cut off')) : store.put(key, content);
  await expect(write({ store: { ...store, put } })).rejects.toThrow('cut off');
  expect(await files()).toHaveLength(1);
  const bounds: LakeDeps['broker']['bounds'] = (topic) =>
    topic === TOPICS.stream_samples ? Promise.reject(new Error('no bounds')) : on.broker.bounds(topic);
  const broker = Object.create(on.broker, { bounds: { value: bounds } }) as typeof on.broker;
  await expect(write({ broker })).rejects.toThrow('no bounds');
  expect(await files()).toHaveLength(2);
});

test('an erasure rewrites files with personal parts, also when the rewriting was cut off', async () => {
  await on.records.append(TOPICS.platform_events, [said(1, 'canary'), { ...said(1, 'other'), subject: 'kick:8' }]);
  await write({ persons: 'clear' });
  const text = async () => readFile(join(folder, (await files())[0]!), 'utf8');
  expect(await text()).toContain('canary');
  await eraseSubject(
    {
      ...{ db: t.db, ...on, erasers: [eventLogEraser], keys_cached_ms: 0 },
      destroyKeys: (subject) => on.subject_keys.erase(subject),
    },
    'kick:7',
  );
  // Other processes may hold the keys until then.
  expect(await write({ persons: 'clear' })).toBe(0);
  await t.db.query(`update lake_files set rewrite_at = now()`);
  const broken = { ...store, put: () => Promise.reject(new Error('killed')) };
  await expect(write({ persons: 'clear', store: broken })).rejects.toThrow('killed');
  expect(await write({ persons: 'clear' })).toBe(1);
  expect(await text()).not.toContain('canary');
  expect(await text()).toContain('other');
  expect(await write()).toBe(1);
  expect(await text()).not.toContain('other');
});

describe('rows of records that the log has dropped', () => {
  const erasing = () => ({
    ...{ db: t.db, ...on, erasers: [eventLogEraser], keys_cached_ms: 0 },
    destroyKeys: (subject: string) => on.subject_keys.erase(subject),
  });
  const drop = async () => {
    for (const [partition, { next }] of await on.broker.bounds(TOPICS.platform_events))
      await on.broker.trim(TOPICS.platform_events, partition, next);
  };
  const text = async () => readFile(join(folder, (await files())[0]!), 'utf8');

  test('are emptied of an erased person, whose records were dropped before the file was written again', async () => {
    await on.records.append(TOPICS.platform_events, [said(1, 'canary'), said(2, 'canary of another account')]);
    await write({ persons: 'clear' });
    await eraseSubject(erasing(), 'kick:7');
    await drop();
    await t.db.query(`update lake_files set rewrite_at = now()`);
    expect(await write({ persons: 'clear' })).toBe(1);
    expect(await text()).not.toContain('canary');
    expect(await ids()).toHaveLength(2);
    expect(await t.db.query('select 1 as one from lake_erasures')).toEqual([]);
  });

  test('are emptied of a person whom an erasure does not find in the log any more', async () => {
    await on.records.append(TOPICS.platform_events, [said(1, 'canary'), { ...said(1, 'other'), subject: 'kick:8' }]);
    await write({ persons: 'clear' });
    await indexTopic({ db: t.db, ...on }, TOPICS.platform_events);
    await drop();
    await expect(eraseSubject(erasing(), 'kick:7')).rejects.toThrow('gone');
    await t.db.query(`update lake_files set rewrite_at = now()`);
    expect(await write({ persons: 'clear' })).toBe(1);
    expect(await text()).not.toContain('canary');
    expect(await ids()).toHaveLength(2);
  });

  test('are left out by retention and a changed setting, and later hours are added to the rest', async () => {
    const kept = said(1, 'kept');
    await on.records.append(TOPICS.platform_events, [kept, said(2, 'of a dissolved account')]);
    await write({ persons: 'clear' });
    await drop();
    const later_one = said(1, 'later');
    await on.records.append(TOPICS.platform_events, [later_one]);
    await t.db.query('insert into dissolved_accounts (account_id) values ($1)', [ACCOUNTS[2]!]);
    await expireLake(t.db);
    await write({ persons: 'clear' });
    expect(await ids()).toEqual([kept.id, later_one.id]);
    expect(await text()).toContain('kept');
    await write();
    expect(await ids()).toEqual([kept.id, later_one.id]);
    expect(await text()).not.toContain('kept');
  });
});

test('retention and dissolved accounts remove rows, and a file without rows', async () => {
  await on.records.append(TOPICS.platform_events, [said(1, 'kept'), said(1, 'kept too')]);
  const [kept, gone] = [ACCOUNTS[1]!, ACCOUNTS[2]!];
  await on.records.append(TOPICS.chat_events, [said(2, 'of a dissolved account')]);
  await write();
  expect(await ids()).toHaveLength(3);
  await t.db.query('insert into dissolved_accounts (account_id) values ($1)', [gone]);
  expect(await expireLake(t.db)).toBe(1);
  expect(await write()).toBe(1);
  expect(await ids()).toHaveLength(2);
  expect(await files()).toHaveLength(1);
  await t.db.query('insert into accounts (id, owner_id, created_at) values ($1, $1, now())', [kept]);
  await t.db.query(
    `insert into account_limit_overrides (account_id, name, value, set_at) values ($1, 'chat_retention_days', 1, now())`,
    [kept],
  );
  await t.db.query(
    `insert into checkpoints (projection, source, partition, engine, version, position, built)
     values ('accounts', 'domain-events', 0, 'x', 1, '0', true), ('plans', 'domain-events', 0, 'x', 1, '0', true)`,
  );
  expect(await expireLake(t.db)).toBe(0);
  await t.db.query(`update lake_files set day = day - 3`);
  expect(await expireLake(t.db)).toBe(1);
  await write();
  expect((await rows()).flat().filter(({ appended_at }) => appended_at === undefined)).toEqual([]);
  expect(await t.db.query('select accounts from lake_files where topic = $1', [TOPICS.platform_events])).toEqual([
    { accounts: [] },
  ]);
});

test('rows are sorted in files where they are many', async () => {
  async function* batches() {
    for (let n = 0; n < 50; n += 1) yield [{ account_id: `a${(n * 7) % 10}`, n, text: 'line\nfeed' }];
  }
  const found: [string, number][] = [];
  for await (const row of sortedByAccount(batches(), 400)) {
    expect(row['text']).toBe('line\nfeed');
    found.push([String(row['account_id']), Number(row['n'])]);
  }
  expect(found).toHaveLength(50);
  expect(found).toEqual([...found].sort(([a, n], [b, m]) => (a < b ? -1 : a > b ? 1 : n - m)));
});
