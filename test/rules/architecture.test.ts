import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(__dirname, '../..');

/** dependency-cruiser is only an ES module, which jest cannot load: it runs in a process of its own. */
function check(base: string): { modules: number; violations: string[] } {
  const script = `import { checkArchitecture } from ${JSON.stringify(join(root, 'scripts/architecture.mjs'))};
    console.log(JSON.stringify(await checkArchitecture(process.cwd())));`;
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script, 'check'], {
    cwd: base,
    encoding: 'utf8',
  });
  return JSON.parse(output.trim().split('\n').at(-1)!);
}

test('imports between the rooms go inward only', () => {
  const { modules, violations } = check(root);
  expect(violations).toEqual([]);
  expect(modules).toBeGreaterThan(50);
});

test('a planted violation is found', () => {
  const base = mkdtempSync(join(tmpdir(), 'lumio-architecture-'));
  try {
    for (const room of ['clients', 'domain', 'engines', 'commands', 'web']) mkdirSync(join(base, room));
    writeFileSync(join(base, 'tsconfig.json'), '{}');
    cpSync(join(root, 'engines/broker/port.ts'), join(base, 'engines/port.ts'));
    writeFileSync(join(base, 'engines/adapter.ts'), 'export const adapter = 1;');
    writeFileSync(
      join(base, 'commands/ideas.ts'),
      "import { adapter } from '../engines/adapter';\nexport const used = adapter;",
    );
    writeFileSync(
      join(base, 'domain/ideas.ts'),
      "import { used } from '../commands/ideas';\nexport const twice = used;",
    );
    writeFileSync(
      join(base, 'clients/ideas.ts'),
      "import { join } from 'node:path';\nexport const joined = join('a');",
    );
    writeFileSync(join(base, 'web/ideas.ts'), "import { used } from '../commands/ideas';\nexport const shown = used;");
    expect(check(base).violations).toEqual([
      expect.stringMatching(/^clients-stand-alone: clients\/ideas\.ts/),
      expect.stringMatching(/^commands-imports-inward: commands\/ideas\.ts/),
      expect.stringMatching(/^domain-imports-the-kernel-alone: domain\/ideas\.ts/),
      expect.stringMatching(/^web-uses-the-client: web\/ideas\.ts/),
    ]);
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
});
