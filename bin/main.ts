import { setFlagsFromString } from 'node:v8';
import type { ConnectOptions } from '../cli/runtime/context';
import { runProgram } from '../cli/runtime/program';
import { VERSION } from './version';

// In production mode Apollo and others respond faster and reveal less; our own settings decide what development
// reveals.
process.env.NODE_ENV ??= 'production';
// Prevents V8 from allocating lists in the old generation: rows retained at the start would cause later answers' rows
// to stay until the next full collection. Decision 0055.
setFlagsFromString('--no-allocation-site-pretenuring');

/** Loads the engines only in commands that use them, so that help and usage errors are immediate. */
const args = process.argv.slice(2);
const connect = async (options?: ConnectOptions) => (await import('./connect.js')).connect(args[0]!, options);

void runProgram(args, { version: VERSION, connect });
