// Runs the stages of a check one after the other, and reports them. Uses only Node's own modules, because the first
// stage of the gate installs the packages.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lastOfEachSuite, openResults } from '../results.mjs';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const MINUTES_FILE = 'ci-minutes.json';
const MAX_NAMED_TESTS = 6;
const KEPT_LINES = 5;

/**
 * Runs `{name, command, env}` in their order, prints a table, writes `ci-minutes.json`, and returns the exit code. A
 * failed stage ends the run, unless `keep_going`. The last lines name each flaky file, each failed stage, its command
 * and its failed tests.
 */
export async function runStages(stages, { keep_going = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'lumio-stages-'));
  process.env.CI_RESULTS_FILE = join(folder, 'results.jsonl');
  try {
    const ran = [];
    for (const stage of stages) {
      ran.push(await runStage(stage));
      if (ran.at(-1).code !== 0 && !keep_going) break;
    }
    report(ran);
    return ran.every(({ code }) => code === 0) ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runStage({ name, command, env = {} }) {
  console.log(`=== ${name}`);
  process.env.CI_STAGE = name;
  const results = openResults();
  const started = Date.now();
  const { code, last } = await run(command, env);
  const seconds = Math.round((Date.now() - started) / 1000);
  return { name, command: command.join(' '), code, seconds, last, entries: results.read() };
}

/** Passes the output through, and returns its last lines. */
function run([program, ...args], env) {
  return new Promise((done, fail) => {
    const child = spawn(program, args, {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let tail = '';
    const pass = (to) => (chunk) => {
      to.write(chunk);
      tail = (tail + chunk.toString()).slice(-4096);
    };
    child.stdout.on('data', pass(process.stdout));
    child.stderr.on('data', pass(process.stderr));
    child.once('error', fail);
    child.once('close', (code) => {
      const last = tail.split('\n').filter((line) => line.trim() !== '');
      done({ code: code ?? 1, last: last.slice(-KEPT_LINES) });
    });
  });
}

/** A failed stage's failed tests; without any, the last lines of its output. */
function failuresOf({ entries, last }) {
  const failed = lastOfEachSuite(entries).filter((entry) => entry.failed > 0);
  const named = failed.flatMap(({ suite, failures }) => (failures ?? []).map(({ title }) => `${suite} › ${title}`));
  const outside = entries.filter((entry) => entry.outside !== undefined).map((entry) => entry.outside);
  return named.length + outside.length > 0 ? [...outside, ...named] : last;
}

function report(ran) {
  const stages = ran.map((stage) => ({
    stage: stage.name,
    seconds: stage.seconds,
    passed: stage.code === 0,
    worker_seconds: stage.entries.reduce((sum, { seconds = 0 }) => sum + seconds, 0),
    tests: lastOfEachSuite(stage.entries).reduce((sum, { tests }) => sum + tests, 0),
    suites: lastOfEachSuite(stage.entries)
      .map(({ suite, seconds, tests, failed }) => ({
        ...{ suite, seconds, tests, failed },
        slowness: stage.entries.find((entry) => entry.measured_in === suite)?.slowness,
      }))
      .sort((a, b) => b.seconds - a.seconds),
  }));
  const seconds = stages.reduce((sum, stage) => sum + stage.seconds, 0);
  const minutes = { at: new Date().toISOString(), cores: cpus().length, seconds, stages };
  writeFileSync(join(root, MINUTES_FILE), `${JSON.stringify(minutes, null, 2)}\n`);

  console.log(`=== ${(seconds / 60).toFixed(1)} minutes on ${minutes.cores} cores; each suite in ${MINUTES_FILE}`);
  for (const stage of stages) {
    const tests = stage.tests > 0 ? `, ${stage.tests} tests in ${stage.worker_seconds} worker seconds` : '';
    console.log(
      `${String(stage.seconds).padStart(6)} s  ${stage.passed ? 'passed' : 'FAILED'}  ${stage.stage}${tests}`,
    );
  }
  for (const { flaky, failure } of ran.flatMap(({ entries }) => entries))
    if (flaky !== undefined) console.log(`FLAKY ${flaky}: ${failure}`);
  const failed = ran.filter(({ code }) => code !== 0);
  for (const stage of failed) {
    const failures = failuresOf(stage);
    const more = failures.length - MAX_NAMED_TESTS;
    console.log(`FAILED ${stage.name}: exit code ${stage.code}, ${stage.seconds} s, command: ${stage.command}`);
    for (const line of failures.slice(0, MAX_NAMED_TESTS)) console.log(`  ${line}`);
    if (more > 0) console.log(`  and ${more} more`);
  }
  const all = stages.flatMap(({ suites }) => suites);
  const tests_failed = all.reduce((sum, suite) => sum + suite.failed, 0);
  const tests_run = all.reduce((sum, suite) => sum + suite.tests, 0);
  if (failed.length === 0) console.log(`${tests_run - tests_failed} passed, ${tests_failed} failed`);
}

/** Reads `--only TEXT` (stages whose names contain TEXT) and the arguments after `--`, which go to the tests. */
export function stageArguments(args) {
  const separator = args.indexOf('--');
  const own = separator < 0 ? args : args.slice(0, separator);
  if (own.length > 0 && (own[0] !== '--only' || own.length !== 2)) {
    console.error('usage: [--only PART_OF_A_STAGE_NAME] [-- ARGUMENTS_FOR_NPM_TEST]');
    process.exit(2);
  }
  return { only: own[1], test_arguments: separator < 0 ? [] : args.slice(separator + 1) };
}

export const chooseStages = (stages, only) => {
  const chosen = stages.filter(({ name }) => only === undefined || name.includes(only));
  if (chosen.length === 0) throw new Error(`no stage has ${only} in its name: ${stages.map(({ name }) => name)}`);
  return chosen;
};
