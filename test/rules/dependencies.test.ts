import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const read = (path: string): string => readFileSync(join(__dirname, '../..', path), 'utf8');
const { dependencies, devDependencies } = JSON.parse(read('package.json')) as Record<string, Record<string, string>>;
const lock = JSON.parse(read('package-lock.json')) as { packages: Record<string, { resolved?: string }> };

test('every dependency says in docs/dependencies.md why it is there, and nothing is told of that is not', () => {
  const text = read('docs/dependencies.md');
  const names = Object.keys({ ...dependencies, ...devDependencies });
  expect(names.filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
  const first_cells = text.split('\n').flatMap((line) => /^\| (?:dev: )?(`[^|]+)\|/.exec(line)?.[1] ?? []);
  const told = first_cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1]!));
  expect(told.filter((name) => !names.includes(name))).toEqual([]);
});

test('versions are fixed: what is tested is what is installed', () => {
  const loose = Object.entries({ ...dependencies, ...devDependencies }).filter(([, version]) => !/^\d/.test(version));
  expect(loose).toEqual([]);
});

test('the lock file names no addresses, so that it installs from any registry', () => {
  const entries = Object.entries(lock.packages);
  expect(entries.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
  expect(entries.length).toBeGreaterThan(100);
});
