import type { Command } from 'commander';
import { registerAccounts } from './admin/shared/account-command';
import type { Run } from './admin/shared/arguments';
import { registerConnections } from './admin/shared/connection-command';
import { registerGrants } from './admin/shared/grant-command';
import { registerOauthClients } from './admin/shared/oauth-client-command';
import { registerSystemKeys } from './admin/shared/system-key-command';
import { registerTokens } from './admin/shared/token-command';
import { runCommand, type Connect, type FullContext } from './runtime/context';

const HELP = `
Each prints one line of JSON with the ids, and the secret, that it made. They work beside a running Lumio, and on the embedded database also
while none runs. Exit codes: 0 done, 1 failed (the reason on stderr), 2 wrong usage. What was cut off may be run again.`;

/**
 * `lumio admin …`: administration of a system that nobody can log in to yet. docs/operating/first-day.md has an
 * example.
 */
export function register(program: Command, connect: Connect<FullContext>): void {
  const group = program
    .command('admin')
    .description('make users, accounts, connections, keys and tokens, from the machine that Lumio runs on')
    .addHelpText('after', HELP);
  const run: Run = (work) =>
    runCommand(connect, async (full) => {
      const admin = await import('./admin/index.js');
      const context = await admin.createAdminContext(full);
      const made = await work(admin, context);
      process.stdout.write(`${JSON.stringify(made)}\n`);
      if (context.behind())
        process.stderr.write('lumio: it is stored; queries show it when a projector has caught up (lumio start)\n');
    });

  // In the order in which help lists them.
  registerAccounts(group, run);
  registerConnections(group, run);
  registerSystemKeys(group, run);
  registerGrants(group, run);
  registerOauthClients(group, run);
  registerTokens(group, run);
}
