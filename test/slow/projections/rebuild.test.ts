import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { rebuild, RebuildRunning, type RebuildOptions } from '../../../projections/runtime/rebuild/rebuild';
import type { TestDatabase } from '../../support/database';
import { type Engines, eventTally, fold, rowsOf, runtimeOf, tally, until } from '../../support/projections';
import { talliedDatabase } from '../../support/tallied';

let t: TestDatabase;
let on: Engines;

const { publish, total } = talliedDatabase((database, embedded) => ([t, on] = [database, embedded]));

const rebuildOf = (options: Partial<RebuildOptions> = {}) =>
  rebuild({ db: t.db, ...on, projections: [tally(), eventTally()], name: 'tally', batch_records: 50, ...options });

const shadows = async () => (await t.db.query(`select nspname from pg_namespace where nspname like 'rebuild%'`)).length;

test('killed midway, twice, it leaves the live side whole; run again it ends', async () => {
  const published = await publish(2000);
  const runtime = runtimeOf(t.db, on, [tally()]);
  await runtime.start();
  await until(async () => (await total()) === 2000);
  for (const wait of [0, 40]) {
    const child = spawn(
      process.execPath,
      [join(__dirname, '../../../dist/test/support/projector-child.js'), 'rebuild', t.url],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const dead = new Promise((resolve) => child.once('exit', resolve));
    await new Promise((resolve) => child.stdout.once('data', resolve));
    await new Promise((resolve) => setTimeout(resolve, wait));
    child.kill('SIGKILL');
    await dead;
    published.push(...(await publish(20)));
    await until(async () => (await total()) === published.length);
    expect(await rowsOf(t.db)).toEqual(fold(published));
  }
  await until(async () => {
    try {
      return await rebuildOf();
    } catch (error) {
      // The server may need a moment to see that the killed process is gone.
      if (error instanceof RebuildRunning) return false;
      throw error;
    }
  });
  await runtime.stop();
  expect(await rowsOf(t.db)).toEqual(fold(published));
  expect(await shadows()).toBe(0);
});
