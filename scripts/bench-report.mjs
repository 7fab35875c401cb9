// Writes the files of bench/results as one page of tables, and nothing else.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const number = (value) => (Math.abs(value) >= 100 ? String(Math.round(value)) : String(Number(value.toFixed(2))));
const bar = (met) => (met === null || met === undefined ? '' : met ? 'met' : '**missed**');

function table(heads, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n');
}

function contenders({ name, measured, ratios }) {
  const rows = measured.map((one) => {
    const ratio = ratios.find(({ to }) => to === one.name);
    const of = ratio ? `${number(ratio.median)} (${ratio.spread.map(number).join(' to ')})` : '';
    const wanted = ratio?.floor ? `≥ ${ratio.floor}: ${bar(ratio.met)}` : '';
    const cpu = number(one.client_cpu_us + one.engine_cpu_us);
    const cores = `${number(one.client_saturation)}, ${number(one.engine_saturation)}`;
    return [one.name, number(one.median), of, wanted, ratio ? number(ratio.by_cpu) : '', cpu, cores];
  });
  const heads = ['', 'a second', 'ratio (spread)', 'bar', 'ratio by CPU', 'CPU each, us', 'cores: client, system'];
  return `${name}\n\n${table(heads, rows)}`;
}

function latencies(all) {
  const rows = all.map(({ kind, path, share, rate, p50_ms, p95_ms, p99_ms }) => [
    [kind, path, `${share} of the ceiling`].filter(Boolean).join(', '),
    ...[rate, p50_ms, p95_ms, p99_ms].map(number),
  ]);
  return `Open loop, milliseconds from the intended send time\n\n${table(['', 'a second', 'p50', 'p95', 'p99'], rows)}`;
}

const checks = (all) =>
  table(
    ['promise', 'measured', 'at most', ''],
    all.map(({ name, value, at_most, met }) => [name, number(value), number(at_most), bar(met)]),
  );

function section({ track, at, machine, met, results, ...extra }) {
  const { cores, model, node, load } = machine;
  const parts = [
    `## ${track}: ${met ? 'all bars met' : 'bars missed'}`,
    `${at.slice(0, 16).replace('T', ' ')}, ${cores} cores (${model}), Node ${node}, load ${load.map(number).join(', ')}.`,
    ...results.map(contenders),
    ...(extra.latencies ? [latencies(extra.latencies)] : []),
    ...(extra.checks ? [checks(extra.checks)] : []),
  ];
  return parts.join('\n\n');
}

/** @param folder files of `report()` in bench/report.ts */
export function writeReport(folder, file) {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort();
  const tracks = files.map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')));
  const head = [
    '# Results',
    'Made by `npm run bench -- --report` from `bench/results/*.json`, and from nothing else. A bar here is the one that the',
  ].join('\n\n');
  const text = `${head}\ntrack had when it was run; load is that of the machine at its end, of 1, 5 and 15 minutes.\n\n`;
  writeFileSync(file, `${text}${tracks.map(section).join('\n\n')}\n`);
  console.log(`${file}: ${tracks.length} tracks`);
}
