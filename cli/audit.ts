import { InvalidArgumentError, type Command } from 'commander';
import { validate as isUuid } from 'uuid';
import { type BrokenChain, verifyAuditLog } from '../maintenance/audit/verify';
import { runCommand, type Connect, type FullContext } from './runtime/context';
import { progressBar } from './runtime/progress';

const account = (text: string): string => {
  if (!isUuid(text)) throw new InvalidArgumentError('must be the id of an account.');
  return `account:${text.toLowerCase()}`;
};

const WORDS = {
  changed: 'is not as it was made',
  missing: 'is missing',
  added: 'was never made',
} as const;
const lineOf = ({ chain, number, id, why }: BrokenChain): string =>
  `${chain}: entry ${number}${id === null ? '' : ` (${id})`} ${WORDS[why]}`;

/** `lumio audit verify`: verifies the hash chains of the audit log. Decision 0029. */
export function register(program: Command, connect: Connect<FullContext>): void {
  program
    .command('audit')
    .description('the audit log')
    .command('verify')
    .description('make the hashes of all chains again, and name the first entry of each chain that does not hold')
    .option('--account <id>', 'only the chain of this account', account)
    .action(({ account: chain }: { account?: string }) =>
      runCommand(connect, async ({ db }) => {
        const bar = progressBar('verifying {value} entries');
        try {
          const onProgress = (entries: number) => bar.update(entries, entries);
          const { chains, entries, broken } = await verifyAuditLog(db, { chain, onProgress });
          bar.stop();
          for (const one of broken) process.stderr.write(`lumio: ${lineOf(one)}\n`);
          process.stdout.write(`${chains - broken.length} of ${chains} chains hold, ${entries} entries\n`);
          return broken.length === 0 ? 0 : 1;
        } finally {
          bar.stop();
        }
      }),
    );
}
