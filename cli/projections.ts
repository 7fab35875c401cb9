import type { Command } from 'commander';
import { projectionStates, type ProjectionState } from '../projections/runtime/status/states';
import { runCommand, type Connect } from './runtime/context';

const COLUMNS = ['name', 'version', 'state', 'lag', 'rate'] as const;

const cells = (one: ProjectionState): string[] => [
  one.name,
  one.version === one.program_version ? String(one.version) : `${one.version ?? '-'}, to be ${one.program_version}`,
  one.built === null ? one.state : `${one.state} (${one.built} built)`,
  one.behind === null ? '-' : one.behind === 0 ? '0' : `${one.behind} (${one.behind_seconds.toFixed(0)} s)`,
  `${one.rate.toFixed(1)}/s`,
];

/** `lumio projections`: the state of each read model from the tables; requires no running process. */
export function register(program: Command, connect: Connect): void {
  program
    .command('projections')
    .description('list read models: version, state, lag and rate')
    .option('--json', 'one JSON object a line')
    .action(async (options: { json?: boolean }) => {
      await runCommand(connect, async (context) => {
        const states = await projectionStates(context);
        if (options.json) {
          for (const one of states) process.stdout.write(`${JSON.stringify(one)}\n`);
          return;
        }
        const rows = [[...COLUMNS], ...states.map(cells)];
        const widths = COLUMNS.map((_, n) => Math.max(...rows.map((row) => row[n]!.length)));
        for (const row of rows) {
          process.stdout.write(
            `${row
              .map((cell, n) => cell.padEnd(widths[n]!))
              .join('  ')
              .trimEnd()}\n`,
          );
        }
      });
    });
}
