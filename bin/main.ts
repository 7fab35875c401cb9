import { Command, CommanderError } from 'commander';
import { register as registerAdmin } from '../cli/admin';
import { register as registerArchive } from '../cli/archive';
import { register as registerAudit } from '../cli/audit';
import { register as registerBackup } from '../cli/backup';
import { register as registerDeadLetters } from '../cli/dead-letters';
import { register as registerDemo } from '../cli/demo';
import { register as registerErase } from '../cli/erase';
import { register as registerHealth } from '../cli/health';
import { register as registerJobs } from '../cli/jobs';
import { register as registerKeys } from '../cli/keys';
import { register as registerMigrate } from '../cli/migrate';
import { register as registerParkedWebhooks } from '../cli/parked-webhooks';
import { register as registerProjections } from '../cli/projections';
import { register as registerRebuild } from '../cli/rebuild';
import { register as registerReplay } from '../cli/replay';
import { register as registerRestore } from '../cli/restore';
import { register as registerStart } from '../cli/start';
import { VERSION } from './version';

// Apollo and others answer faster, and tell strangers less, in production mode; our own settings decide what
// development shows.
process.env.NODE_ENV ??= 'production';

/** The engines are loaded by the first command that needs them: help and usage errors come at once. */
const connect = async () => (await import('./connect.js')).connect();

/** The lumio command. Exit codes: 0 done, 1 failed (the reason on stderr), 2 wrong usage. */
async function main(argv: readonly string[]): Promise<void> {
  const program = new Command('lumio')
    .description('Multi-tenant, event-sourced backend for live streamers')
    .version(VERSION)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'lumio: ')) });
  registerStart(program);
  registerDemo(program);
  registerMigrate(program, connect);
  registerProjections(program, connect);
  registerRebuild(program, connect);
  registerDeadLetters(program, connect);
  registerParkedWebhooks(program, connect);
  registerJobs(program, connect);
  registerReplay(program, connect);
  registerErase(program, connect);
  registerArchive(program, connect);
  registerAudit(program, connect);
  registerBackup(program, connect);
  registerRestore(program);
  registerKeys(program, connect);
  registerAdmin(program, connect);
  registerHealth(program);
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
