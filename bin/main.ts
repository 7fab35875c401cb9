import { setFlagsFromString } from 'node:v8';
import { runProgram } from '../cli/runtime/program';
import { VERSION } from './version';

// Apollo and others answer faster, and tell strangers less, in production mode; our own settings decide what
// development shows.
process.env.NODE_ENV ??= 'production';
// No list is old from the start: rows that a start keeps would make V8 keep those of each later answer until the next
// full collection. Decision 0055.
setFlagsFromString('--no-allocation-site-pretenuring');

/** The engines are loaded by the first command that needs them: help and usage errors come at once. */
const connect = async () => (await import('./connect.js')).connect();

void runProgram(process.argv.slice(2), { version: VERSION, connect });
