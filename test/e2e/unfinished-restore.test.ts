import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { markUnfinished } from '../../engines/backup/unfinished';
import { LOCKS } from '../../engines/locks/port';
import { asQueryable } from '../../engines/postgres/pool';
import { type TestDatabase, testDatabase } from '../support/database';
import { runLumio, settingsOf } from '../support/server';

/** A copy or a read model of half a database would be taken for the whole. */
describe('backup and rebuild refuse a database with an unfinished restore', () => {
  let folder: string;
  let database: TestDatabase;
  let env: Record<string, string>;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'lumio-unfinished-'));
    database = await testDatabase(2);
    env = {
      ...settingsOf(folder),
      LUMIO_DATABASE__URL: database.url,
      LUMIO_SECRETS__KEYS: `test:${Buffer.alloc(32, 1).toString('base64')}`,
    };
  });
  afterAll(async () => {
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('while a restore runs, and after it ended before its last step', async () => {
    const refused = async (args: readonly string[], reason: RegExp) =>
      expect(await runLumio(args, env)).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(reason),
      });
    const restoring = await database.db.pool.connect();
    try {
      await asQueryable(restoring).query('select pg_advisory_lock($1)', [LOCKS.restore]);
      await refused(['rebuild', 'event-log'], /^lumio: a restore of this database is under way: [^\n]*\n$/);
    } finally {
      restoring.release(true);
    }
    await markUnfinished(database.db, {
      taken_at: '2026-01-02T03:04:05.000Z',
      installation_id: '0190a1b2-0000-7000-8000-000000000000',
      log_restores: { topics: 'tables', events: 'tables' },
      logs: 'untouched',
    });
    const unfinished =
      /^lumio: a restore of the backup of 2026-01-02T03:04:05.000Z ended before its last step[^\n]*--continue\n$/;
    await refused(['rebuild', 'event-log'], unfinished);
    await refused(['backup', join(folder, 'copy')], unfinished);
    expect(existsSync(join(folder, 'copy'))).toBe(false);
  });
});
