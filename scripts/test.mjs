// npm test: the fast, deterministic tests. Arguments go to jest. CI=true gives failed files a second look.
import { runJest } from './jest.mjs';

process.exit(await runJest(process.argv.slice(2), { second_look: process.env.CI === 'true' }));
