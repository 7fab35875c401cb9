import { readFileSync } from 'node:fs';
import { Argument, InvalidArgumentError, Option, type Command } from 'commander';
import { isKnownFlag, isPlanFlag, KNOWN_FLAGS, PLAN_FLAGS } from '../domain/feature-flags';
import { SUPER_ADMIN } from '../domain/admin-roles';
import { DEFAULT_ROLES, isSystemGrant } from '../domain/permissions';
import { LOGIN_PROVIDERS, type LoginProvider } from '../domain/user-logins';
import { PLATFORMS, type Platform } from '../domain/vendors';
import { isUuid } from '../kernel/uuid';
import type { AdminContext } from './admin/services';
import { registerOauthClients } from './admin/oauth-client-command';
import { registerTokens } from './admin/token-command';
import { runCommand, type Connect, type FullContext } from './runtime/context';

const uuid = (text: string): string => {
  if (!isUuid(text)) throw new InvalidArgumentError('must be an id (a UUID).');
  return text.toLowerCase();
};
const words =
  (longest: number) =>
  (text: string): string => {
    const trimmed = text.trim();
    if (trimmed === '' || trimmed.length > longest)
      throw new InvalidArgumentError(`must have 1 to ${longest} characters.`);
    return trimmed;
  };
const knownFlag = (text: string): string => {
  if (!isKnownFlag(text)) throw new InvalidArgumentError(`unknown feature ${text}, see lumio admin grant --help.`);
  return text;
};
const SWITCHES = { on: true, off: false, default: null } as const;
type Features = Record<string, boolean | null>;
const feature = (text: string, before: Features): Features => {
  const [flag, state = 'on'] = text.split('=');
  if (!isKnownFlag(flag!)) throw new InvalidArgumentError(`unknown feature ${flag}, see --help.`);
  if (!(state in SWITCHES)) throw new InvalidArgumentError('must be <feature>, or <feature>=on, =off or =default.');
  return { ...before, [flag!]: SWITCHES[state as keyof typeof SWITCHES] };
};
const grants = (text: string): string[] => {
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !isSystemGrant(name));
  if (unknown !== undefined) throw new InvalidArgumentError(`invalid permission: ${unknown}.`);
  return [...new Set(names)];
};

const MEMBER_ROLES = DEFAULT_ROLES.map(({ slug }) => slug).filter((slug) => slug !== 'owner');

const HELP = `
Each prints one line of JSON with the ids, and the secret, that it made. They work beside a running Lumio, and on the embedded database also
while none runs. Exit codes: 0 done, 1 failed (the reason on stderr), 2 wrong usage. What was cut off may be run again.`;

/**
 * `lumio admin …`: what an operator does to a system that nobody can log in to yet. docs/operating/first-day.md walks
 * through it.
 */
export function register(program: Command, connect: Connect<FullContext>): void {
  const group = program
    .command('admin')
    .description('make users, accounts, connections, keys and tokens, from the machine that Lumio runs on')
    .addHelpText('after', HELP);
  const run = (work: (admin: Admin, context: AdminContext) => Promise<object>) =>
    runCommand(connect, async (full) => {
      const admin = await import('./admin/index.js');
      const context = await admin.createAdminContext(full);
      const made = await work(admin, context);
      process.stdout.write(`${JSON.stringify(made)}\n`);
      if (context.behind())
        process.stderr.write('lumio: it is stored; queries show it when a projector has caught up (lumio start)\n');
    });

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

  group
    .command('connect')
    .description('connect an account to a channel, or to a shop with the secret that signs its webhooks')
    .requiredOption('--account <account>', 'the account id', uuid)
    .addOption(new Option('--platform <platform>', 'whose channel').choices(PLATFORMS).conflicts('shop'))
    .option('--channel-id <id>', "the channel's id on that platform", words(200))
    .option('--channel-name <name>', 'what the channel is called (default: its id)', words(200))
    .option('--shop <domain>', 'the Shopify shop, like name.myshopify.com', words(253))
    .option('--secret-file <file>', "a file with the shop's webhook secret, or - for standard input")
    .addHelpText(
      'after',
      `
Channels have no secret of their own: their platforms sign under LUMIO_WEBHOOKS__YOUTUBE_SECRET, …KICK_PUBLIC_KEY and …TROVO_SECRET.
Connecting a connected shop again replaces its secret; every node goes by the new one within five seconds.`,
    )
    .action(({ account, platform, channelId, channelName, shop, secretFile }: ConnectTo, command: Command) => {
      const wrong = (text: string) => command.error(`error: ${text}`, { exitCode: 2 });
      if (shop !== undefined) {
        if (secretFile === undefined) return wrong('--shop needs --secret-file (a file, or - for standard input)');
        if (channelId !== undefined || channelName !== undefined) return wrong('a shop has no channel');
        return run(async (admin, context) => {
          await admin.requireAccount(context, account);
          const secret = readSecret(secretFile);
          return admin.connectShop(context, { account_id: account, shop_domain: shop, secret });
        });
      }
      if (platform === undefined || channelId === undefined)
        return wrong('name --platform and --channel-id, or --shop');
      if (secretFile !== undefined) return wrong('a channel has no secret of its own, see --help');
      return run(async (admin, context) => {
        await admin.requireAccount(context, account);
        return admin.connectChannel(context, {
          account_id: account,
          platform,
          platform_channel_id: channelId,
          channel_name: channelName ?? channelId,
        });
      });
    });

  group
    .command('create-system-key')
    .description('make a key of the service itself; it is shown once')
    .requiredOption('--label <label>', 'what it is for', words(100))
    .requiredOption('--permissions <list>', 'by commas; resource:* is every action of a resource', grants)
    .addHelpText(
      'after',
      '\nA key whose line was lost cannot be shown again: revoke it (lumio admin revoke-system-key) and make another.',
    )
    .action((made: { label: string; permissions: string[] }) =>
      run((admin, context) => admin.createSystemKey(context, made)),
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

  group
    .command('grant')
    .description('give, and take: features of an account or a plan, a plan, a role in an account, or an admin role')
    .option('--account <account>', 'the account id', uuid)
    .option('--user <user>', 'the user id', uuid)
    .option('--feature <feature>', 'of --account or --plan: on, or =off, =default; may be given again', feature, {})
    .option('--all-features', 'of --account or --plan: every feature that plans give')
    .option('--plan <plan>', 'with --account: puts it on the plan; without: whose features are meant', words(40))
    .addOption(
      new Option('--role <role>', 'with --account and --user: makes the user a member with it; none ends that').choices(
        [...MEMBER_ROLES, 'none'],
      ),
    )
    .addOption(new Option('--admin-role <role>', 'with --user').choices([SUPER_ADMIN.key]))
    .option('--take', 'with --admin-role: takes it')
    .addHelpText('after', `\nFeatures: ${KNOWN_FLAGS.map(({ key }) => key).join(', ')}`)
    .action((options: Grant, command: Command) => {
      const wrong = (text: string) => command.error(`error: ${text}`, { exitCode: 2 });
      const { account, user, role, adminRole, plan } = options;
      const features = {
        ...(options.allFeatures && Object.fromEntries(PLAN_FLAGS.map(({ key }) => [key, true]))),
        ...options.feature,
      };
      const has_features = Object.keys(features).length > 0;
      const puts_on = plan !== undefined && account !== undefined;
      if ([has_features, puts_on, role !== undefined, adminRole !== undefined].filter(Boolean).length !== 1)
        return wrong('name one of --feature (or --all-features), --role, --admin-role, or --account with --plan');
      if (options.take && adminRole === undefined) return wrong('--take goes with --admin-role');
      if (adminRole !== undefined) {
        if (user === undefined || account !== undefined || plan !== undefined)
          return wrong('--admin-role goes with --user alone');
        return run(async (admin, context) => ({
          user_id: user,
          admin_roles: await admin.setAdminRole(context, user, adminRole, !options.take),
        }));
      }
      if (plan !== undefined && account === undefined) {
        if (user !== undefined || role !== undefined) return wrong('a plan has features alone');
        const odd = Object.keys(features).find((key) => !isPlanFlag(key));
        if (odd !== undefined) return wrong(`plans do not give ${odd}`);
        const given = Object.fromEntries(Object.entries(features).map(([key, on]) => [key, on === true]));
        return run(async (admin, context) => ({ plan, features: await admin.setPlanFeatures(context, plan, given) }));
      }
      if (account === undefined) return wrong('name the --account');
      if (plan !== undefined) {
        if (user !== undefined) return wrong('a plan is the account’s, not a user’s');
        return run(async (admin, context) => {
          await admin.setPlan(context, account, plan);
          return { account_id: account, plan };
        });
      }
      if (role !== undefined) {
        if (user === undefined) return wrong('--role goes with --account and --user');
        const given = role === 'none' ? null : role;
        return run(async (admin, context) => {
          await admin.setMembership(context, account, user, given);
          return { account_id: account, user_id: user, role: given };
        });
      }
      if (user !== undefined) return wrong('features are the account’s, not a user’s');
      return run(async (admin, context) => ({
        account_id: account,
        features: await admin.setFeatures(context, account, features),
      }));
    });

  group
    .command('switch-feature')
    .argument('<feature>', 'one of those that grant --help lists', knownFlag)
    .addArgument(new Argument('<state>').choices(['on', 'off']))
    .description('turn a feature off for everyone, whatever accounts were given, or on again')
    .action((feature: string, state: 'on' | 'off') =>
      run(async (admin, context) => {
        await admin.switchFeature(context, feature, state === 'on');
        return { feature, enabled: state === 'on' };
      }),
    );

  registerOauthClients(group, run, { uuid, name: words(100) });
  registerTokens(group, run, uuid);
}

/** Loaded when it is used: help must not wait for what signs and seals. */
type Admin = typeof import('./admin/index.js');

interface CreateUser {
  name: string;
  provider?: LoginProvider;
  providerId?: string;
  id?: string;
}

interface ConnectTo {
  account: string;
  platform?: Platform;
  channelId?: string;
  channelName?: string;
  shop?: string;
  secretFile?: string;
}

interface Grant {
  account?: string;
  user?: string;
  feature: Features;
  plan?: string;
  allFeatures?: boolean;
  role?: string;
  adminRole?: string;
  take?: boolean;
}

/** @throws Error in one line when there is none to read */
function readSecret(file: string): string {
  const secret = readFileSync(file === '-' ? 0 : file, 'utf8').replace(/\r?\n$/, '');
  if (secret.trim() === '' || secret.length > 4096) throw new Error('the secret must have 1 to 4096 characters');
  return secret;
}
