// npm run test:slow: tests with several processes, kills, thousands of repetitions, or measurements of time and memory.
// Arguments go to jest.
import { runJest } from './jest.mjs';

process.exit(await runJest(['--config', 'jest.slow.config.cjs', ...process.argv.slice(2)]));
