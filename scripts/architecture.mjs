// Checks the import rule of docs/architecture.md. Fails when a rule is broken, and when it read too few modules for a
// meaningful check.
import { cruise } from 'dependency-cruiser';
import extractTSConfig from 'dependency-cruiser/config-utl/extract-ts-config';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { root } from './prepare.mjs';
import { rooms } from './rooms.mjs';

const OUTSIDE = new Set(['bench', 'test']);

/** Checks the rooms below `base`; returns the modules read and the broken rules, one line each. */
export async function checkArchitecture(base = root) {
  const config = createRequire(import.meta.url)('../.dependency-cruiser.cjs');
  const { output } = await cruise(
    rooms(base).filter((room) => !OUTSIDE.has(room)),
    { ...config.options, baseDir: base, ruleSet: { forbidden: config.forbidden }, validate: true },
    {},
    { tsConfig: extractTSConfig(`${root}/tsconfig.json`) },
  );
  return {
    modules: output.modules.filter((module) => module.source.endsWith('.ts')).length,
    violations: output.summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`),
  };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.chdir(root);
  const { modules, violations } = await checkArchitecture();
  for (const line of violations) console.error(line);
  if (modules < 50) {
    console.error(`architecture: read only ${modules} modules; the check itself is broken`);
    process.exit(1);
  }
  console.log(`architecture: ${modules} modules, ${violations.length} violations`);
  process.exit(violations.length === 0 ? 0 : 1);
}
