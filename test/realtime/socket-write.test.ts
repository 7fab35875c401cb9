import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const CHILD = join(__dirname, '../../dist/test/support/socket-write-child.js');

test('a process that writes as fast as another one reads lives: no request is used while a write still holds it', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [CHILD], { encoding: 'utf8', timeout: 120_000 });
  expect([status, stderr]).toEqual([0, '']);
  const { rounds, waited } = JSON.parse(stdout) as { rounds: number; waited: number };
  expect(waited).toBeGreaterThan(rounds / 20);
});
