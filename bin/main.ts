import { setFlagsFromString } from 'node:v8';
import { Command, CommanderError } from 'commander';
import type { Connect, FullContext } from '../cli/runtime/context';
import { VERSION } from './version';

// Apollo and others answer faster, and tell strangers less, in production mode; our own settings decide what
// development shows.
process.env.NODE_ENV ??= 'production';
// No list is old from the start: rows that a start keeps would make V8 keep those of each later answer until the next
// full collection. Decision 0055.
setFlagsFromString('--no-allocation-site-pretenuring');

interface CommandFile {
  register(program: Command, connect: Connect<FullContext>): void;
}
/**
 * In the order in which help lists them. Only the one that is asked for is loaded: the others' parts take longer than
 * most commands.
 */
const COMMANDS: readonly [string, () => Promise<CommandFile>][] = [
  ['start', () => import('../cli/start.js')],
  ['demo', () => import('../cli/demo.js')],
  ['migrate', () => import('../cli/migrate.js')],
  ['projections', () => import('../cli/projections.js')],
  ['rebuild', () => import('../cli/rebuild.js')],
  ['dead-letters', () => import('../cli/dead-letters.js')],
  ['parked-webhooks', () => import('../cli/parked-webhooks.js')],
  ['jobs', () => import('../cli/jobs.js')],
  ['replay', () => import('../cli/replay.js')],
  ['erase', () => import('../cli/erase.js')],
  ['archive', () => import('../cli/archive.js')],
  ['audit', () => import('../cli/audit.js')],
  ['backup', () => import('../cli/backup.js')],
  ['restore', () => import('../cli/restore.js')],
  ['keys', () => import('../cli/keys.js')],
  ['admin', () => import('../cli/admin.js')],
  ['health', () => import('../cli/health.js')],
];

/** The engines are loaded by the first command that needs them: help and usage errors come at once. */
const connect = async () => (await import('./connect.js')).connect();

/** The lumio command. Exit codes: 0 done, 1 failed (the reason on stderr), 2 wrong usage. */
async function main(argv: readonly string[]): Promise<void> {
  const program = new Command('lumio')
    .description('Multi-tenant, event-sourced backend for live streamers')
    .version(VERSION)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'lumio: ')) });
  const asked = COMMANDS.filter(([name]) => name === argv[0]);
  for (const [, load] of asked.length > 0 ? asked : COMMANDS) (await load()).register(program, connect);
  program.commands.forEach((command) => command.exitOverride());
  try {
    await program.parseAsync([...argv], { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? 0 : 2;
      return;
    }
    process.stderr.write(`lumio: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
    // Whatever a start that failed has left running must not keep a process that serves nothing.
    setTimeout(() => process.exit(1), 2_000).unref();
  }
}

void main(process.argv.slice(2));
