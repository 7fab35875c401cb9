import { InvalidArgumentError, Option, type Command } from 'commander';
import {
  CLIENT_TYPES,
  GRANT_TYPES,
  type ClientType,
  type GrantType,
} from '../../../domain/oauth-provider/oauth-clients';
import { names, type Run, uuid, words } from './arguments';

interface ClientOptions {
  name: string;
  type: ClientType;
  redirectUri: string[];
  scopes: string[];
  grantTypes: GrantType[];
  account?: string;
}

const grantTypes = (text: string): GrantType[] => {
  const unknown = names(text).find((name) => !(GRANT_TYPES as readonly string[]).includes(name));
  if (unknown !== undefined) throw new InvalidArgumentError(`there is no grant type ${unknown}.`);
  return names(text) as GrantType[];
};

/** `lumio admin create-oauth-client`. */
export function registerOauthClients(group: Command, run: Run): void {
  group
    .command('create-oauth-client')
    .description('register a program of others that acts for users; its secret is shown once')
    .requiredOption('--name <name>', 'what users are told it is called', words(100))
    .addOption(
      new Option('--type <type>', 'public: it runs at its users and keeps no secret')
        .choices([...CLIENT_TYPES])
        .default('confidential'),
    )
    .option(
      '--redirect-uri <uri>',
      'where users are sent back to, to the character; may be given again',
      (uri: string, before: string[]) => [...before, uri],
      [],
    )
    .requiredOption('--scopes <list>', 'account permissions that it may ask for, by commas', names)
    .option('--grant-types <list>', 'by commas', grantTypes, ['authorization_code', 'refresh_token'])
    .option('--account <account>', 'what client_credentials act on', uuid)
    .action(({ name, type, redirectUri, scopes, grantTypes, account }: ClientOptions) =>
      run((admin, context) =>
        admin.createOauthClient(context, {
          ...{ name, client_type: type, redirect_uris: redirectUri, scopes, grant_types: grantTypes },
          account_id: account,
        }),
      ),
    );
}
