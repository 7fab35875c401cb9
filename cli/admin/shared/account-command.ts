import { Option, type Command } from 'commander';
import { LOGIN_PROVIDERS, type LoginProvider } from '../../../domain/identity/login-connections';
import { MEMBER_ROLES, type Run, uuid, words } from './arguments';

interface CreateUser {
  name: string;
  provider?: LoginProvider;
  providerId?: string;
  id?: string;
}

/** `lumio admin create-user`, `create-account` and `replace-owner`. */
export function registerAccounts(group: Command, run: Run): void {
  group
    .command('create-user')
    .description('make a user; with --provider the one who logs in there, and asked again for the same one: that user')
    .requiredOption('--name <name>', 'what the user is called', words(100))
    .addOption(new Option('--provider <provider>', 'who vouches for the user at a login').choices(LOGIN_PROVIDERS))
    .option('--provider-id <id>', "the user's id at that provider", words(200))
    .option('--id <id>', 'the id to make it under; asked again under it, the user that is there', uuid)
    .action(({ name, provider, providerId, id }: CreateUser, command: Command) => {
      if ((provider === undefined) !== (providerId === undefined))
        command.error('error: --provider and --provider-id come together', { exitCode: 2 });
      const login = provider && { provider, provider_id: providerId! };
      return run((admin, context) => admin.createUser(context, { display_name: name, user_id: id, login }));
    });

  group
    .command('create-account')
    .description('make an account with its owner and the default roles')
    .requiredOption('--owner <user>', "the owner's user id", uuid)
    .requiredOption('--name <name>', 'what the account is called', words(100))
    .option('--id <id>', 'the id to make it under; asked again under it, the account that is there', uuid)
    .action(({ owner, name, id }: { owner: string; name: string; id?: string }) =>
      run((admin, context) => admin.createAccount(context, { owner_id: owner, name, account_id: id })),
    );

  group
    .command('replace-owner')
    .description('give an account to another user, when its owner is lost')
    .requiredOption('--account <account>', 'the account id', uuid)
    .requiredOption('--user <user>', 'who owns it from now on', uuid)
    .addOption(
      new Option('--former-role <role>', 'what the former owner is then (default: no member)').choices(MEMBER_ROLES),
    )
    .action(({ account, user, formerRole }: { account: string; user: string; formerRole?: string }) =>
      run((admin, context) => admin.replaceOwner(context, account, user, formerRole ?? null)),
    );
}
