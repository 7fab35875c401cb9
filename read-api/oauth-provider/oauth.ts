import { z } from 'zod';
import {
  AUTHORIZATION_ERRORS,
  AuthorizationQuestion,
  checkAuthorization,
} from '../../services/oauth/oauth-authorization';
import { firstParty, get, query } from '../../app/operation';

/** Data that a front end shows the user before they agree. */
export const oauthAuthorizationRequest = query({
  name: 'oauthAuthorizationRequest',
  // Source: spec rulings, "OAuth clients".
  summary: 'Who asks the logged-in user for what, before they agree',
  rest: get('/v1/auth/authorize', { standard_parameters: true }),
  guard: [firstParty],
  input: AuthorizationQuestion,
  output: z
    .object({
      client_id: z.uuid(),
      name: z.string(),
      account_id: z.uuid().describe('On which it would act: the active one'),
      redirect_uri: z.string(),
      scopes: z.array(z.string()).describe('What it asks for'),
      granted: z.array(z.string()).describe('What of that the user holds now'),
    })
    .meta({ id: 'OauthAuthorizationRequest' }),
  errors: AUTHORIZATION_ERRORS,
  async run({ input, caller }, services) {
    const { client, scopes, account_id } = await checkAuthorization(services, caller, input);
    const { client_id, name } = client;
    const granted = scopes.filter((scope) => caller.permissions.has(scope));
    return { client_id, name, account_id, redirect_uri: input.redirect_uri, scopes, granted };
  },
});
