// npm run lint, second half: README.md, CONTRIBUTING.md, docs/ and commit subjects in plain words. The findings of each
// document are counted in prose.json in this folder; a number there may only fall. `--write` writes it, `--list` prints
// every finding.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../prepare.mjs';
import { findings } from './plain-words.mjs';

const KNOWN = join(root, 'scripts/lint/prose.json');
const SUBJECT_LENGTH = 72;

const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).split('\n').filter(Boolean);

/** The sentences of a document's prose: code, links' addresses and tables' rules are left out. */
function sentences(markdown) {
  const prose = markdown
    .replace(/^```[\s\S]*?^```/gm, '')
    .replace(/`[^`]*`/g, '``')
    .replace(/\]\([^)]*\)/g, ']')
    .replace(/^\|[-| :]+\|$/gm, '');
  return prose
    .split(/\n\s*\n|^\s*[-*] |^\d+\. |\||^#+ /m)
    .flatMap((block) => block.replace(/\s+/g, ' ').split(/(?<=[.?!;:])\s/))
    .map((sentence) => sentence.replace(/^[>*_[\]\s]+/, '').trim())
    .filter(Boolean);
}

/** Findings by document. */
function documents() {
  const files = git('ls-files', 'README.md', 'CONTRIBUTING.md', 'docs/*.md', 'docs/**/*.md', 'bench/README.md');
  return new Map(
    [...new Set(files)].map((file) => [
      file,
      sentences(readFileSync(join(root, file), 'utf8')).flatMap((sentence) => {
        return findings(sentence).map((found) => `${found} (${sentence.slice(0, 80)})`);
      }),
    ]),
  );
}

/** Subjects since this check last changed that are too long or unclear; a shallow clone has none. */
function subjects() {
  const since = git('log', '-1', '--format=%H', '--', 'scripts/lint/prose.mjs').at(0);
  if (!since) return [];
  return git('log', '--no-merges', '--format=%s', `${since}..HEAD`).flatMap((subject) => [
    ...(subject.length > SUBJECT_LENGTH ? [`${subject}: ${subject.length} characters of ${SUBJECT_LENGTH}`] : []),
    ...findings(subject).map((found) => `${subject}: ${found}`),
  ]);
}

const found = documents();
const counts = Object.fromEntries(
  [...found].filter(([, all]) => all.length > 0).map(([file, all]) => [file, all.length]),
);
if (process.argv.includes('--write')) writeFileSync(KNOWN, `${JSON.stringify(counts, null, 2)}\n`);
if (process.argv.includes('--list'))
  for (const [file, all] of found) for (const one of all) console.log(`${file}: ${one}`);
const known = JSON.parse(readFileSync(KNOWN, 'utf8'));
const faults = [...new Set([...Object.keys(known), ...Object.keys(counts)])].flatMap((file) => {
  const [now, before] = [counts[file] ?? 0, known[file] ?? 0];
  if (now === before) return [];
  if (now < before) return [`${file}: ${now} findings where prose.json has ${before}: lower it with --write`];
  return [`${file}: ${now} findings where prose.json allows ${before}:`, ...found.get(file).map((one) => `  ${one}`)];
});
faults.push(...subjects().map((subject) => `commit subject ${subject}`));
for (const fault of faults) console.error(fault);
process.exit(faults.length === 0 ? 0 : 1);
