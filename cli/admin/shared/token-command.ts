import { InvalidArgumentError, Option, type Command } from 'commander';
import type { BoundKind } from '../../../access/authentication/tokens/bound-tokens';
import { parseInstant } from '../../../lib/time/instants';
import { isAccountPermission } from '../../../domain/common/permissions';
import { type Admin, names, type Run, uuid } from './arguments';
import type { AdminContext } from './services';

/** CLI names of the tokens for one overlay, widget or install, and the channels that they open. */
const BOUND: Readonly<Record<string, { kind: BoundKind; channel: string }>> = {
  overlay: { kind: 'overlay', channel: 'overlay' },
  shared: { kind: 'shared_overlay', channel: 'overlay' },
  extension: { kind: 'extension', channel: 'ext-storage' },
  widget: { kind: 'widget', channel: 'widget' },
};
const KINDS = ['session', 'service', 'popout', ...Object.keys(BOUND)];

interface TokenOptions {
  kind: string;
  user?: string;
  account?: string;
  permissions?: string[];
  label: string;
  resource?: string;
  key?: string;
  extension?: string;
  expires?: string;
}

const instant = (text: string): string => {
  const parsed = parseInstant(text);
  if (parsed === null || Date.parse(parsed) <= Date.now())
    throw new InvalidArgumentError('must be an RFC 3339 date-time that is still to come.');
  return parsed;
};

/** `lumio admin token` and `lumio admin revoke-token`. */
export function registerTokens(group: Command, run: Run): void {
  group
    .command('token')
    .description('make a token: a session of a user as a login opens one, or a token or key of another kind')
    .addOption(new Option('--kind <kind>', 'what kind of token').choices(KINDS).default('session'))
    .option('--user <user>', 'session, popout: the user id', uuid)
    .option(
      '--account <account>',
      'the account that it acts on (a session, by default: the only one of the user)',
      uuid,
    )
    .option('--permissions <list>', 'service, popout: by commas; extension: what its install was granted', names)
    .option('--label <label>', 'service, popout: what it is for', 'lumio admin')
    .option('--resource <id>', 'overlay, shared, widget: its id; extension: that of the install', uuid)
    .option('--key <key>', "overlay, shared: the overlay's key, which names its channel (default: its id)")
    .option('--extension <id>', 'extension: its id', uuid)
    .option('--expires <time>', 'when it ends, RFC 3339 (default: never; extension: in 15 minutes at most)', instant)
    .action((options: TokenOptions, command: Command) => {
      const wrong = (text: string) => command.error(`error: ${text}`, { exitCode: 2 });
      const { kind, user, account, permissions = [], resource } = options;
      if (kind === 'session') return user === undefined ? wrong('name the --user') : run(session(user, account));
      if (account === undefined) return wrong('name the --account');
      const bound = BOUND[kind];
      if (bound !== undefined) {
        if (resource === undefined) return wrong('name the --resource');
        if (kind === 'shared' && options.expires === undefined) return wrong('say when it --expires');
        return run(boundToken(options, { ...bound, account, resource }));
      }
      const unknown = permissions.find((name) => !isAccountPermission(name));
      if (permissions.length === 0 || unknown !== undefined)
        return wrong(unknown === undefined ? 'name its --permissions' : `invalid permission: ${unknown}`);
      const wanted = { account_id: account, label: options.label, permissions, expires_at: options.expires ?? null };
      if (kind === 'service') return run(async (admin, context) => admin.createServiceKey(context, wanted));
      if (user === undefined) return wrong('name the --user');
      return run(async (admin, context) => admin.createPopoutToken(context, { ...wanted, user_id: user }));
    });

  group
    .command('revoke-token')
    .argument('<token-id>', 'its id', uuid)
    .requiredOption('--account <account>', 'the account that it acts on', uuid)
    .description('end a token of an overlay, shared overlay, extension or widget')
    .action((id: string, { account }: { account: string }) =>
      run(async (admin, context) => {
        await admin.revokeBoundToken(context, account, id);
        return { id, revoked: true };
      }),
    );
}

const session = (user: string, account: string | undefined) => async (admin: Admin, context: AdminContext) => {
  const opened = await admin.openUserSession(context, user, account);
  const { session_id, account_id, access, refresh } = opened;
  return {
    user_id: user,
    account_id,
    session_id,
    access_token: access.token,
    expires_at: new Date(access.expires_at).toISOString(),
    refresh_token: refresh.token,
    refresh_expires_at: new Date(refresh.expires_at).toISOString(),
  };
};

const boundToken =
  (
    { key, extension, permissions, expires }: TokenOptions,
    { kind, channel, account, resource }: { kind: BoundKind; channel: string; account: string; resource: string },
  ) =>
  (admin: Admin, context: AdminContext) =>
    admin.createBoundToken(context, {
      kind,
      account_id: account,
      resource_id: resource,
      channel: `${channel}:${key ?? resource}`,
      extension_id: extension,
      install_grants: permissions,
      expires_at: expires ?? null,
    });
