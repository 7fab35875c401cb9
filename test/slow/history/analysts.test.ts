import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type TestDatabase, testDatabase } from '../../support/database';
import { settingsOf, spawnLumio } from '../../support/server';
import { eventually } from '../../support/vendor-cloud';

const ROOT = join(__dirname, '../../..');

/** Commands of a section of docs/analysts.md, block by block. */
function blocksOf(heading: string): string[] {
  const page = readFileSync(join(ROOT, 'docs/analysts.md'), 'utf8');
  const section = page.slice(page.indexOf(`## ${heading}`)).split('\n## ')[0]!;
  return [...section.matchAll(/```sh\n([^]*?)```/g)].map(([, commands]) => commands!.replace(/\\\n\s*/g, ' ').trim());
}

describe('docs/analysts.md', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lumio-analysts-'));
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase(2);
    mkdirSync(join(folder, 'data'));
    symlinkSync(join(ROOT, 'docs'), join(folder, 'docs'));
  });
  afterAll(async () => {
    await database?.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('leads from the demo to a chart and a table', async () => {
    const env = {
      ...settingsOf(join(folder, 'data')),
      LUMIO_DATABASE__URL: database.url,
      LUMIO_SECRETS__KEYS: `test:${randomBytes(32).toString('base64')}`,
    };
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('LUMIO_'));
    const program = `"${process.execPath}" "${join(ROOT, 'dist/bin/main.js')}"`;
    const run = (commands: string) =>
      promisify(execFile)('sh', ['-ec', commands.replaceAll('npx lumio', program)], {
        cwd: folder,
        env: { ...Object.fromEntries(inherited), ...env },
      });
    const [demo, ...then] = blocksOf('From the demo to a chart');
    expect(demo).toMatch(/^npx lumio demo/);
    const child = spawnLumio(demo!.split(' ').slice(2), env);
    const ended = new Promise<number | null>((done) => child.once('close', done));
    child.stdout.resume();
    child.stderr.resume();
    try {
      await eventually(async () => {
        const rows = await database.db
          .query('select 1 from platform_chat_messages limit 10')
          .catch((error: { code?: string }) => {
            // The demo has not made its tables yet.
            if (error.code === '42P01') return [];
            throw error;
          });
        return rows.length === 10 || undefined;
      }, 'chat of the demo');
      for (const commands of then) await run(commands);
    } finally {
      child.kill('SIGINT');
      await ended;
    }
    const heat = JSON.parse(readFileSync(join(folder, 'heat.json'), 'utf8')) as Record<string, number>;
    expect(Object.values(heat).reduce((all, one) => all + one, 0)).toBeGreaterThanOrEqual(10);
    const chart = readFileSync(join(folder, 'heat.svg'), 'utf8');
    expect(chart.match(/<rect /g)).toHaveLength(Object.keys(heat).length);
    const table = readFileSync(join(folder, 'chat.parquet'));
    expect([table.subarray(0, 4), table.subarray(-4)].map(String)).toEqual(['PAR1', 'PAR1']);
  });
});
