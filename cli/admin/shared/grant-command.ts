import { Argument, InvalidArgumentError, Option, type Command } from 'commander';
import { SUPER_ADMIN } from '../../../domain/operators/admin-roles';
import { isKnownFlag, isPlanFlag, KNOWN_FLAGS, PLAN_FLAGS } from '../../../domain/operators/feature-flags';
import { MEMBER_ROLES, type Run, uuid, words } from './arguments';

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

/** `lumio admin grant` and `switch-feature`. */
export function registerGrants(group: Command, run: Run): void {
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
        const settings = Object.fromEntries(Object.entries(features).map(([key, on]) => [key, on === true]));
        return run(async (admin, context) => ({
          plan,
          features: await admin.setPlanFeatures(context, plan, settings),
        }));
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
        const settings = role === 'none' ? null : role;
        return run(async (admin, context) => {
          await admin.setMembership(context, account, user, settings);
          return { account_id: account, user_id: user, role: settings };
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
}
