import { z } from 'zod';
import type { Caller } from '../../access/authentication/caller';
import { appFor } from './credential-modes';
import { authorizeConnect, type connectingErrors, requireIntegrationQuota } from './connecting';
import type { AppPlatform } from '../../domain/operators/system-connections';
import type { Refuse } from '../../kernel/operations/errors';
import { beginOAuth } from '../oauth/oauth-states';
import { callbackOf, MAX_RETURN_URL_LENGTH, parseReturnUrl } from '../oauth/return-url';
import type { Services } from '../../app/services';
import type { GrantKind } from '../../vendors/oauth/port';

export const return_to = z
  .string()
  .min(1)
  .max(MAX_RETURN_URL_LENGTH)
  .describe('A page of this service to come back to');

export const StartedConnection = z
  .object({ authorize_url: z.string().describe('Where the browser goes'), state: z.string() })
  .meta({ id: 'StartedConnection' });

interface Begin {
  caller: Caller & { user_id: string };
  platform: AppPlatform;
  kind: GrantKind;
  return_to: string;
}

/** Begins to connect a channel or bot: returns the vendor's page, and the state with which its answer is redeemed. */
export async function beginConnection(
  services: Services,
  { caller, platform, kind, return_to: address }: Begin,
  refuse: Refuse<typeof connectingErrors>,
): Promise<z.output<typeof StartedConnection>> {
  const { account_id, vendor } = await authorizeConnect(services, { caller, platform, kind }, refuse);
  const back = parseReturnUrl(services.settings, address);
  if (back === null) throw refuse('UNKNOWN_RETURN');
  const app = await appFor(services, { platform, kind: kind === 'channel' ? 'channel' : 'bot', account_id });
  if (app === null) throw refuse('NO_APP', { platform });
  await requireIntegrationQuota(services, { account_id, platform, kind }, refuse);
  const of = { user_id: caller.user_id, account_id, platform, kind };
  const begun = { ...of, app: app.app, client_id: app.client_id, return_to: back.href };
  const { state, challenge } = await beginOAuth(services, begun);
  const redirect_uri = callbackOf(back, platform);
  return { authorize_url: vendor.authorizeUrl({ app, kind, redirect_uri, state, challenge }), state };
}
