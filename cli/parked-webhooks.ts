import { InvalidArgumentError, Option, type Command } from 'commander';
import { createConnectionLookup } from '../services/connections/connection-lookup';
import { isVendor, type Vendor } from '../domain/common/vendors';
import { createPersonalTexts } from '../privacy/subject-keys/texts';
import { createFirstSubscriptions } from '../ingest/kick/first-subscriptions';
import { createFirstMessages } from '../ingest/runtime/parse/first-messages';
import { createParkedWebhooks } from '../ingest/runtime/parked/parked';
import { retryParkedWebhook } from '../ingest/runtime/parked/retry-parked';
import { type Connect, type FullContext, runCommand } from './runtime/context';

const vendor = (text: string): Vendor => {
  if (!isVendor(text)) throw new InvalidArgumentError('must be a vendor: kick, youtube, …');
  return text;
};
const count = (text: string): number => {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError('must be a whole number above 0.');
  return value;
};

const lettersOf = ({ db, subject_keys }: FullContext) =>
  createParkedWebhooks({ db, texts: createPersonalTexts(subject_keys) });

/**
 * `lumio parked-webhooks list|show|retry|drop`: signed deliveries, and messages over connections to vendors, that could
 * not be normalised or stored. Design §6.
 */
export function register(program: Command, connect: Connect<FullContext>): void {
  const group = program
    .command('parked-webhooks')
    .description('signed webhooks, and words over connections to vendors, that could not be understood or stored');

  group
    .command('list')
    .description('list parked deliveries, oldest first')
    .addOption(new Option('--vendor <slug>', 'only of this vendor').argParser(vendor))
    .addOption(new Option('--limit <n>', 'at most so many').default(100).argParser(count))
    .action((options: { vendor?: Vendor; limit: number }) =>
      runCommand(connect, async (context) => {
        for (const letter of await lettersOf(context).list(options)) {
          const { id, reason, attempts, last_received_at, detail } = letter;
          process.stdout.write(`${[id, letter.vendor, reason, attempts, last_received_at, detail].join('\t')}\n`);
        }
      }),
    );

  group
    .command('show')
    .argument('<id>')
    .description('show one delivery whole, as JSON; its body as base64, null when nobody can read it any more')
    .action((id: string) =>
      runCommand(connect, async (context) => {
        const letter = await lettersOf(context).get(id);
        if (letter === null) throw new Error(`there is no parked webhook ${id}`);
        const shown = { ...letter, raw_body: letter.raw_body?.toString('base64') ?? null };
        process.stdout.write(`${JSON.stringify(shown, null, 2)}\n`);
      }),
    );

  group
    .command('retry')
    .argument('<id>')
    .description('normalise and store it once more; storing twice has one effect')
    .action((id: string) =>
      runCommand(connect, async (context) => {
        const { db, relay, secrets, records, subject_keys, settings, log } = context;
        const connections = createConnectionLookup({ db, relay, secrets });
        const parked = lettersOf(context);
        const result = await retryParkedWebhook(id, {
          settings,
          connections,
          records,
          first_messages: createFirstMessages({ db, records, subject_keys }),
          first_subscriptions: createFirstSubscriptions(db),
          parked,
          log,
        }).finally(() => connections.close());
        if (result.status === 'retried') process.stdout.write(`stored ${result.records} records\n`);
        else if (result.status === 'not_parked') throw new Error(`${id} is not parked`);
        else throw new Error(`${result.reason}: ${result.detail}`);
      }),
    );

  group
    .command('drop')
    .argument('<id>')
    .description('give it up')
    .action((id: string) =>
      runCommand(connect, async (context) => {
        if (!(await lettersOf(context).settle(id, 'dropped'))) throw new Error(`${id} is not parked`);
        process.stdout.write('dropped\n');
      }),
    );
}
