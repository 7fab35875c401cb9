import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testDatabase } from '../support/database';
import { runLumio, settingsOf } from '../support/server';

/** What a command prints is for programs to read: its log must not come in between. */
test('a list is NDJSON alone on stdout when something is logged, which goes to stderr', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'lumio-output-'));
  const database = await testDatabase(2);
  try {
    await database.db.query(
      `insert into dead_letters (projection, source, partition, position, stream, reason, error)
       select 'event-log', 'some-topic', 0, n::text, 's' || n, 'poison', 'of no matter' from generate_series(1, 2) n`,
    );
    const { code, stdout, stderr } = await runLumio(['dead-letters', 'list', '--json'], {
      ...settingsOf(data_dir),
      LUMIO_DATABASE__URL: database.url,
      LUMIO_SECRETS__KEYS: `test:${Buffer.alloc(32, 1).toString('base64')}`,
      // Nothing listens there, which is worth a warning.
      LUMIO_REDIS__URL: 'redis://127.0.0.1:9',
    });
    const lines = stdout.split('\n').slice(0, -1);
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([{ stream: 's1' }, { stream: 's2' }]);
    const logged = stderr.split('\n').slice(0, -1);
    expect(logged.map((line) => JSON.parse(line) as unknown)).toContainEqual(
      expect.objectContaining({ level: 'warn', msg: expect.stringContaining('Redis is away') }),
    );
    expect(code).toBe(0);
  } finally {
    await database.drop();
    rmSync(data_dir, { recursive: true, force: true });
  }
});
