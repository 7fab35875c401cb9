import { InvalidArgumentError, type Command } from 'commander';
import { validate as isUuid } from 'uuid';
import { erasingOn } from '../bin/erasers';
import { isVendor } from '../domain/vendors';
import type { Person } from '../kernel/eraser';
import { erasePerson } from '../maintenance/erase-person';
import { runCommand, type Connect, type FullContext } from './runtime/context';
import { progressBar } from './runtime/progress';

const person = (text: string): Person => {
  const colon = text.indexOf(':');
  const kind = text.slice(0, Math.max(colon, 0));
  const id = text.slice(colon + 1);
  if (kind === 'user' && isUuid(id)) return { subject: text.toLowerCase(), kind, id: id.toLowerCase() };
  if (!isVendor(kind) || id === '')
    throw new InvalidArgumentError(
      'must be <vendor>:<id of the person there>, like kick:987654321, or user:<user id>.',
    );
  return { subject: text, kind, id };
};

/** `lumio erase SUBJECT`: a person's right to be forgotten. Design §5. */
export function register(program: Command, connect: Connect<FullContext>): void {
  program
    .command('erase')
    .argument(
      '<subject>',
      'the person: <vendor>:<id>, like kick:987654321; or user:<id> of one who logs in here',
      person,
    )
    .description(
      'erase a person for good: destroy their keys, and what is readable of them in read models, messages and parked webhooks; of a user, the profile',
    )
    .action((who: Person) =>
      runCommand(connect, async (context) => {
        const bar = progressBar('erasing {bar} {percentage}% | {value}/{total} records | {eta_formatted} left');
        try {
          const onProgress = ({ done, total }: { done: number; total: number }) => bar.update(done, total);
          const done = await erasePerson({ ...erasingOn(context), onProgress }, who);
          context.wakeups.notify('messages-erased');
          bar.stop();
          process.stdout.write(`${who.subject}: ${done.join(', ')}\n`);
        } finally {
          bar.stop();
        }
      }),
    );
}
