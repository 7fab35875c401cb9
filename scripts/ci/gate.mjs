// The merge gate, run by .ci/run: what a change must pass. Every other check is a stage of scripts/check-full.mjs.
import { chooseStages, runStages, stageArguments } from './stages.mjs';

const { only, test_arguments } = stageArguments(process.argv.slice(2));
const npm = (script, ...args) => ['npm', 'run', '--silent', script, ...(args.length > 0 ? ['--', ...args] : [])];

const STAGES = [
  { name: 'packages', command: ['npm', 'ci', '--no-audit', '--no-fund', '--loglevel=error'] },
  { name: 'engines', command: ['node', 'scripts/engines/install.mjs', 'kafka', 'redis', 'versitygw'] },
  { name: 'types', command: npm('typecheck') },
  { name: 'lint', command: npm('lint') },
  { name: 'architecture', command: npm('architecture') },
  { name: 'tests', command: ['npm', 'test', ...(test_arguments.length > 0 ? ['--', ...test_arguments] : [])] },
  { name: 'contracts on real engines', command: npm('test:contracts') },
  { name: 'npm start from a fresh clone', command: ['node', 'scripts/ci/fresh-clone.mjs'] },
];

process.exit(await runStages(chooseStages(STAGES, only)));
