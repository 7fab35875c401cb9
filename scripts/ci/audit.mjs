// Asks the npm registry for known vulnerabilities of the packages that run in production; fails on a high or critical
// one. A registry without that service is named, because nothing was checked then.
import { spawnSync } from 'node:child_process';
import { root } from '../prepare.mjs';

const { stdout } = spawnSync('npm', ['audit', '--omit=dev', '--json'], { cwd: root, encoding: 'utf8' });
const report = JSON.parse(stdout);
const counts = report.metadata?.vulnerabilities;
if (!counts) {
  console.log(`audit: NOT CHECKED, the registry refused: ${report.message ?? report.error?.summary}`);
} else {
  console.log(`audit: ${JSON.stringify(counts)}`);
  for (const { name, severity, range } of Object.values(report.vulnerabilities)) {
    console.log(`  ${severity}: ${name} ${range}`);
  }
  process.exit(counts.high + counts.critical > 0 ? 1 : 0);
}
