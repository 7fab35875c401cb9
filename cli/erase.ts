import { InvalidArgumentError, type Command } from 'commander';
import { validate as isUuid } from 'uuid';
import { erasingOn } from '../bin/upkeep/erasers';
import { isVendor } from '../domain/common/vendors';
import { load } from '../app/write-path/aggregate-cache';
import { user, userStream } from '../domain/identity/users';
import type { Person } from '../kernel/eraser';
import { erasePerson } from '../privacy/erasure/erase-person';
import { runCommand, type Connect, type FullContext } from './runtime/context';
import { progressBar, progressLines } from './runtime/progress';

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

/** Whether the person is or was a user of this installation. */
async function isUser({ events }: FullContext, { kind, id }: Person): Promise<boolean> {
  if (kind !== 'user') return false;
  return (await load(events, user, userStream(id))) !== null;
}

/** `lumio erase SUBJECT`: erases a person. Design §5. */
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
        const bar = progressBar('erasing {bar} {percentage}% | {value}/{total} | {what}');
        const step = progressLines(`erasing ${who.subject}`);
        try {
          const onProgress = ({ done, total, what }: { done: number; total: number; what: string }) => {
            bar.update(done, total, what);
            step(what);
          };
          const done = await erasePerson({ ...erasingOn(context), onProgress }, who);
          context.wakeups.notify('messages-erased');
          bar.stop();
          if (done.length === 0 && !(await isUser(context, who)))
            throw new Error(`nothing is stored about ${who.subject}: check the id (one erased before may be gone)`);
          process.stdout.write(`${who.subject}: ${done.join(', ') || 'nothing is left to erase'}\n`);
        } finally {
          bar.stop();
        }
      }),
    );
}
