import type { Command } from 'commander';

/** `lumio start`: every role of the settings in this process, until SIGINT or SIGTERM. */
export function register(program: Command): void {
  program
    .command('start')
    .description('start Lumio; settings come from lumio.config.json and LUMIO_* (see README)')
    .action(async () => {
      const { serve } = await import('../serve.js');
      const running = await serve();
      process.exit(await running.ended);
    });
}
