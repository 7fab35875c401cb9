import { InvalidArgumentError, type Command } from 'commander';
import { validate as isUuid } from 'uuid';
import { erasingOn } from '../bin/upkeep/erasers';
import { othersRun } from '../engines/postgres/other-processes';
import { isVendor } from '../domain/common/vendors';
import { load } from '../app/write-path/aggregate-cache';
import { user, userStream } from '../domain/identity/users';
import type { Person } from '../kernel/eraser';
import { erasePerson } from '../privacy/erasure/erase-person';
import { runCommand, type Connect, type FullContext } from './runtime/context';
import { stepProgress } from './runtime/progress';

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
        const progress = stepProgress(`erasing ${who.subject}`);
        try {
          const done = await erasePerson(
            {
              ...erasingOn(context),
              isUser: async (id) => (await load(context.events, user, userStream(id))) !== null,
              othersRun: () => othersRun(context.db, 'erase'),
              onProgress: progress.update,
            },
            who,
          );
          context.wakeups.notify('messages-erased');
          progress.stop();
          process.stdout.write(`${who.subject}: ${done.join(', ') || 'nothing is left to erase'}\n`);
        } finally {
          progress.stop();
        }
      }),
    );
}
