import { InvalidArgumentError, Option, type Command } from 'commander';
import {
  countParked,
  findDeadLetter,
  listDeadLetters,
  parkedHeads,
  type DeadLetter,
} from '../projections/runtime/dead-letter/dead-letters';
import { dropReaction, isOfReactor, retryReaction, type SettleReactionDeps } from '../reactors/runtime/retry-letters';
import {
  dropDeadLetter,
  NotSettled,
  retryDeadLetter,
  type SettleDeps,
  type Settled,
} from '../projections/runtime/dead-letter/retry-letters';
import { runCommand, type CliContext, type Connect } from './runtime/context';

const id = (text: string): number => {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError('must be the id of a dead letter.');
  return value;
};

const HEADING = ['id', 'projection', 'stream or record', 'type', 'reason', 'last failed at', 'error'].join('\t');

const line = (letter: DeadLetter): string =>
  [
    letter.id,
    letter.projection,
    letter.stream ?? `${letter.source}/${letter.partition}@${letter.position}`,
    letter.type ?? '-',
    letter.reason,
    letter.last_failed_at,
    letter.error.split('\n', 1)[0]!.slice(0, 160),
  ].join('\t');

/** The letter as JSON; record bytes as base64 (personal parts stay encrypted). */
const detail = (letter: DeadLetter): string =>
  JSON.stringify(
    {
      ...letter,
      record: letter.record?.toString('base64') ?? null,
      headers: letter.headers === null ? null : (JSON.parse(letter.headers) as unknown),
      event: letter.event === null ? null : (JSON.parse(letter.event) as unknown),
    },
    null,
    2,
  );

type Settle = (context: CliContext, id: number) => Promise<Settled>;
type SettleApplied = (deps: SettleDeps, id: number) => Promise<Settled>;
type SettleReaction = (deps: SettleReactionDeps, id: number) => Promise<Settled>;

/** Dispatches a letter to the handler for reactors or for projections. */
const either =
  (of_reactor: SettleReaction, of_projection: SettleApplied): Settle =>
  async (context, letter_id) => {
    const letter = await findDeadLetter(context.db, letter_id);
    if (letter === undefined || !isOfReactor(letter))
      return of_projection({ ...context, ...context.reactions }, letter_id);
    return of_reactor({ ...context, ...context.reactions }, letter_id);
  };

/** Description of a letter: its id, where it is parked, and its type. */
const named = ({ id, projection, type }: DeadLetter): string =>
  `dead letter ${id} (${[projection, ...(type ? [type] : [])].join(', ')})`;

async function reportOne(context: CliContext, settle: Settle, letter_id: number): Promise<number> {
  const letter = await findDeadLetter(context.db, letter_id);
  if (letter === undefined) throw new Error(`there is no dead letter ${letter_id}`);
  return report(await settle(context, letter_id), `${named(letter)}: `);
}

/** @param subject what the counts are about */
function report({ retried, dropped, waiting, error }: Settled, subject = ''): number {
  process.stdout.write(`${subject}applied ${retried}, dropped ${dropped}, still waiting ${waiting}\n`);
  if (error === null) return 0;
  process.stderr.write(`lumio: ${error}\n`);
  return 1;
}

/** Retries all letters, continuing after failures; returns the counts and the first error. */
async function retryAll(context: CliContext, retry: Settle, projection: string | undefined): Promise<Settled> {
  const all: Settled = { retried: 0, dropped: 0, waiting: 0, error: null };
  for await (const letter_id of parkedHeads(context.db, projection ?? null)) {
    try {
      const letter = await findDeadLetter(context.db, letter_id);
      const { retried, error } = await retry(context, letter_id);
      const outcome = error === null ? `applied ${retried}` : `failed again: ${error.split('\n', 1)[0]}`;
      if (letter) process.stdout.write(`${named(letter)}: ${outcome}\n`);
      all.retried += retried;
      all.error ??= error;
    } catch (error) {
      // Already settled by the retry of an earlier letter in its lane.
      if (error instanceof NotSettled) continue;
      all.error ??= error instanceof Error ? error.message : String(error);
    }
  }
  for (const [name, parked] of await countParked(context.db)) {
    if (projection === undefined || name === projection) all.waiting += parked;
  }
  return all;
}

/** `lumio dead-letters list|show|retry|drop`. */
export function register(program: Command, connect: Connect): void {
  const group = program
    .command('dead-letters')
    .description('records and events that a projection could not apply, or a reactor not react to');

  group
    .command('list')
    .description('list dead letters, oldest first')
    .option('--projection <name>', 'only of this projection, or of reactor:<name>')
    .addOption(new Option('--status <status>', 'which').choices(['parked', 'retried', 'dropped']).default('parked'))
    .addOption(new Option('--limit <n>', 'at most so many').default(100).argParser(id))
    .option('--json', 'one JSON object a line')
    .action(async (options: { projection?: string; status: DeadLetter['status']; limit: number; json?: boolean }) => {
      await runCommand(connect, async ({ db }) => {
        const letters = await listDeadLetters(db, options);
        if (letters.length > 0 && !options.json) process.stdout.write(`${HEADING}\n`);
        for (const letter of letters) {
          process.stdout.write(`${options.json ? JSON.stringify(JSON.parse(detail(letter))) : line(letter)}\n`);
        }
      });
    });

  group
    .command('show')
    .argument('<id>', 'the dead letter', id)
    .description('show one dead letter whole, as JSON')
    .action(async (letter_id: number) => {
      await runCommand(connect, async ({ db }) => {
        const letter = await findDeadLetter(db, letter_id);
        if (!letter) throw new Error(`there is no dead letter ${letter_id}`);
        process.stdout.write(`${detail(letter)}\n`);
      });
    });

  const settling = (name: string, description: string, settle: Settle) =>
    group
      .command(name)
      .argument('<id>', 'the dead letter', id)
      .description(description)
      .action(async (letter_id: number) => {
        await runCommand(connect, (context) => reportOne(context, settle, letter_id));
      });
  const retry = either(retryReaction, retryDeadLetter);
  group
    .command('retry')
    .argument('[id]', 'the dead letter', id)
    .description('apply it now, or react to it, and what waits behind it in its stream')
    .option('--all', 'all that are parked, one after the other')
    .option('--projection <name>', 'with --all: only of this projection, or of reactor:<name>')
    .action(
      async (letter_id: number | undefined, options: { all?: boolean; projection?: string }, command: Command) => {
        if ((letter_id === undefined) === !options.all)
          command.error('lumio: name one dead letter, or --all', { exitCode: 2 });
        await runCommand(connect, async (context) =>
          letter_id === undefined
            ? report(await retryAll(context, retry, options.projection), 'all: ')
            : reportOne(context, retry, letter_id),
        );
      },
    );
  settling('drop', 'give it up; the stream that waited behind it goes on', either(dropReaction, dropDeadLetter));
}
