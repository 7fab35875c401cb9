import { InvalidArgumentError, type Command } from 'commander';
import { validate as isUuid } from 'uuid';
import { eraseProfile } from '../access/profiles';
import { isVendor, type Vendor } from '../domain/vendors';
import { noteErasures } from '../engines/subject-keys/transfer';
import { createDeadLetters } from '../ingest/runtime/parked';
import { eraseSubject } from '../maintenance/erasure';
import { ERASERS } from '../bin/erasers';
import { runCommand, type Connect, type FullContext } from './runtime/context';
import { progressBar } from './runtime/progress';

/** A person whom events are about, or one who logs in here. */
type Person = { subject: string; vendor: Vendor; id: string } | { user_id: string };

const person = (text: string): Person => {
  const colon = text.indexOf(':');
  const vendor = text.slice(0, Math.max(colon, 0));
  const id = text.slice(colon + 1);
  if (vendor === 'user' && isUuid(id)) return { user_id: id.toLowerCase() };
  if (!isVendor(vendor) || id === '')
    throw new InvalidArgumentError(
      'must be <vendor>:<id of the person there>, like kick:987654321, or user:<user id>.',
    );
  return { subject: text, vendor, id };
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
        if ('user_id' in who) {
          const erased = await eraseProfile(context, who.user_id);
          process.stdout.write(`user:${who.user_id}: ${erased ? 'profile erased' : 'no profile is there'}\n`);
          return;
        }
        const { subject, vendor, id } = who;
        const bar = progressBar('erasing {bar} {percentage}% | {value}/{total} records | {eta_formatted} left');
        try {
          const erased = await eraseSubject(
            {
              ...context,
              erasers: ERASERS,
              destroyKeys: async () => {
                // The note comes first: a crash in between leaves a key that the next run destroys, never a key that a
                // restore brings back.
                await noteErasures(context.blobs, await context.subject_keys.keysOf(subject), new Date().toISOString());
                return context.subject_keys.erase(subject);
              },
              onProgress: ({ done, total }) => bar.update(done, total),
            },
            subject,
          );
          const parked = await createDeadLetters({ db: context.db }).erase(vendor, id);
          context.wakeups.notify('messages-erased');
          bar.stop();
          process.stdout.write(
            `${subject}: ${erased.keys} keys destroyed, ${erased.records} records, ${erased.rows} rows and ${erased.messages} messages erased, ` +
              `${parked} parked webhooks deleted\n`,
          );
        } finally {
          bar.stop();
        }
      }),
    );
}
