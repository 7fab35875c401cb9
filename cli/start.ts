import type { Command } from 'commander';

/** `lumio start`: runs every role of the settings in this process until SIGINT or SIGTERM. */
export function register(program: Command): void {
  program
    .command('start')
    .description('start Lumio; settings come from lumio.config.json and LUMIO_* (see README)')
    .option(
      '--adopt',
      'take over a database of the other environment (LUMIO_ENV); production removes demo users and keys',
    )
    .action(async ({ adopt }: { adopt?: boolean }) => {
      const { serve } = await import('../bin/serve.js');
      const running = await serve({ adopt });
      process.exit(await running.ended);
    });
}
