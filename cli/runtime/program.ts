import { Command, CommanderError } from 'commander';
import type { Connect, FullContext } from './context';

interface CommandFile {
  register(program: Command, connect: Connect<FullContext>): void;
}

/**
 * Commands in the order of the help. Only the requested one is loaded, because loading takes longer than most commands
 * run.
 */
const COMMANDS: readonly [string, () => Promise<CommandFile>][] = [
  ['start', () => import('../start.js')],
  ['demo', () => import('../demo.js')],
  ['migrate', () => import('../migrate.js')],
  ['projections', () => import('../projections.js')],
  ['rebuild', () => import('../rebuild.js')],
  ['dead-letters', () => import('../dead-letters.js')],
  ['parked-webhooks', () => import('../parked-webhooks.js')],
  ['jobs', () => import('../jobs.js')],
  ['replay', () => import('../replay.js')],
  ['export', () => import('../export.js')],
  ['erase', () => import('../erase.js')],
  ['archive', () => import('../archive.js')],
  ['audit', () => import('../audit.js')],
  ['backup', () => import('../backup.js')],
  ['restore', () => import('../restore.js')],
  ['keys', () => import('../keys.js')],
  ['admin', () => import('../admin.js')],
  ['health', () => import('../health.js')],
];

/** The lumio command. Exit codes: 0 done, 1 failed (the reason on stderr), 2 wrong usage. */
export async function runProgram(
  argv: readonly string[],
  { version, connect }: { version: string; connect: Connect<FullContext> },
): Promise<void> {
  const program = new Command('lumio')
    .description('Multi-tenant, event-sourced backend for live streamers')
    .version(version)
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
    // Remains of a failed start must not keep the process alive.
    setTimeout(() => process.exit(1), 2_000).unref();
  }
}
