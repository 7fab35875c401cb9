import { InvalidArgumentError, type Command } from 'commander';
import { isSystemGrant } from '../../../domain/common/permissions';
import { names, type Run, uuid, words } from './arguments';

const grants = (text: string): string[] => {
  const unknown = names(text).find((name) => !isSystemGrant(name));
  if (unknown !== undefined) throw new InvalidArgumentError(`invalid permission: ${unknown}.`);
  return names(text);
};

/** `lumio admin create-system-key` and `revoke-system-key`. */
export function registerSystemKeys(group: Command, run: Run): void {
  group
    .command('create-system-key')
    .description('make a key of the service itself; it is shown once, and the others are listed')
    .requiredOption('--label <label>', 'what it is for', words(100))
    .requiredOption('--permissions <list>', 'by commas; resource:* is every action of a resource', grants)
    .addHelpText(
      'after',
      '\nA key whose line was lost cannot be shown again: revoke it (lumio admin revoke-system-key) and make another.',
    )
    .action((made: { label: string; permissions: string[] }) =>
      run(async (admin, context) => {
        const key = await admin.createSystemKey(context, made);
        const others = await admin.otherSystemKeys(context, key.key_id);
        if (others.length > 0) process.stderr.write(`lumio: other system keys:\n  ${others.join('\n  ')}\n`);
        return key;
      }),
    );
  group
    .command('revoke-system-key')
    .argument('<key-id>', 'its id', uuid)
    .description('end a system key')
    .action((key_id: string) =>
      run(async (admin, context) => {
        await admin.revokeSystemKey(context, key_id);
        return { key_id, revoked: true };
      }),
    );
}
