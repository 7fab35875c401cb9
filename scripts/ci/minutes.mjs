// Converts the lines of JSON that .ci/run and its suites wrote into ci-minutes.json: minutes of each stage, and of each
// suite in it. node scripts/ci/minutes.mjs LINES FILE
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';

const [lines, file] = process.argv.slice(2);
const entries = existsSync(lines) ? readFileSync(lines, 'utf8').trim().split('\n').filter(Boolean).map(JSON.parse) : [];
const minutes = (seconds) => Math.round((seconds / 60) * 100) / 100;
const slowness = entries.filter((one) => one.measured_in !== undefined);
const slownessOf = (stage, suite) => slowness.find((one) => one.stage === stage && one.measured_in === suite)?.slowness;
const ran = entries.filter(({ suite, measured_in }) => suite === undefined && measured_in === undefined);
const stages = ran.map(({ stage, seconds, code }) => ({
  stage,
  minutes: minutes(seconds),
  passed: code === 0,
  suites: entries
    .filter((one) => one.suite !== undefined && one.stage === stage)
    .sort((a, b) => b.seconds - a.seconds)
    .map(({ suite, seconds: took, tests, failed }) => ({
      suite,
      minutes: minutes(took),
      tests,
      failed,
      // Highest slowness that the suite measured when it multiplied a limit; undefined is left out.
      slowness: slownessOf(stage, suite),
    })),
}));
// Lanes run concurrently: the total ends with the last stage.
const total = minutes(Math.max(0, ...ran.map(({ from, seconds }) => from + seconds)));
const report = { at: new Date().toISOString(), cores: cpus().length, minutes: total, stages };
writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`);
console.log(`=== ${report.minutes} minutes on ${report.cores} cores; by suite in ${file}`);
for (const { stage, minutes: took, passed } of stages)
  console.log(`${took.toFixed(1).padStart(5)} min  ${stage}${passed ? '' : '  FAILED'}`);
