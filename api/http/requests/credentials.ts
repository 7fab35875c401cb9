import { popoutSessionIn } from '../../../access/authentication/tokens/popout-cookie';
import type { Credentials } from '../../../access/authentication/resolve';
import type { CredentialSource } from './request-state';

/** Credentials in a request. */
export const credentialsOf = ({ headers, query, ip }: CredentialSource): Credentials => ({
  authorization: headers.authorization,
  query_token: typeof query.token === 'string' ? query.token : undefined,
  popout_cookie: popoutSessionIn(headers.cookie),
  on_upgrade: false,
  account_header: single(headers['x-lumio-account']),
  ip,
  now: Date.now(),
});

const single = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);
