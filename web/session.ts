import { Refused } from '../clients/js/index';

/** Session of the page: its account, and the source of a token for each connection. */
export interface Session {
  account_id: string;
  wsToken(): Promise<string>;
}

const KEPT = 'lumio-token';
/** Key of the id of the popout token that this tab has created. */
const MADE = 'lumio-token-id';
const POPOUT = 'lm_pop_';
/** Permissions of the page's token, which lasts for hours and so only reads. */
const READS = ['events:read', 'chat:read', 'spotify:read'];
const HOURS_12 = 12 * 3_600_000;

export const tokenInAddress = (): string | null => new URLSearchParams(location.hash.slice(1)).get('token');

/**
 * Returns the token of the fragment, else the one from before a reload; null without one. Removes the fragment from the
 * address, so that nobody copies the token with the link.
 */
export function givenToken(): string | null {
  const token = tokenInAddress();
  if (token !== null) {
    history.replaceState(null, '', location.pathname);
    keep(token);
  }
  return token ?? sessionStorage.getItem(KEPT);
}

export const keep = (token: string): void => sessionStorage.setItem(KEPT, token);
export const forget = (): void => sessionStorage.removeItem(KEPT);

/**
 * Opens a session with a token. A session's own token lasts minutes, so the page creates a read-only popout token with
 * it; if that is refused, the page uses the session's token until it ends.
 * @throws Refused for an invalid token
 */
export async function openSession(token: string): Promise<Session> {
  if (token.startsWith(POPOUT)) return popoutSession(token);
  const { data } = await call<{ data: { active_account_id: string | null } }>('GET', '/v1/users/me', token);
  const { active_account_id: account_id } = data;
  if (account_id === null) throw new Refused('The token has no active account');
  const made = await madePopout(token);
  if (made !== null) {
    keep(made.token);
    await revokeFormer(token, made.id);
    return popoutSession(made.token);
  }
  return { account_id, wsToken: () => wsToken('/v1/auth/ws-token', token) };
}

async function madePopout(token: string): Promise<{ id: string; token: string } | null> {
  const expires_at = new Date(Date.now() + HOURS_12).toISOString();
  try {
    const made = await call<{ data: { id: string; token: string } }>('POST', '/v1/tokens', token, {
      label: 'Live page',
      permissions: READS,
      expires_at,
    });
    return made.data;
  } catch (error) {
    console.warn('the page goes on with the token that it was given:', error);
    return null;
  }
}

/** Revokes the previous token of this tab, because each opened address creates another. */
async function revokeFormer(token: string, made: string): Promise<void> {
  const former = sessionStorage.getItem(MADE);
  sessionStorage.setItem(MADE, made);
  if (former === null) return;
  await call('DELETE', `/v1/tokens/${former}`, token).catch((error: unknown) =>
    console.warn('the token of before ends by itself:', error),
  );
}

async function popoutSession(popout: string): Promise<Session> {
  const exchanged = async () => {
    const body = { token: popout };
    type Exchanged = { data: { token: string; account_id: string } };
    return (await call<Exchanged>('POST', '/v1/auth/popout/exchange', null, body)).data;
  };
  const { account_id } = await exchanged();
  // A new session for each connection, so that none is too old.
  return { account_id, wsToken: async () => wsToken('/v1/auth/popout/ws-token', (await exchanged()).token) };
}

async function wsToken(path: string, token: string): Promise<string> {
  return (await call<{ data: { ws_token: string } }>('POST', path, token, {})).data.ws_token;
}

/** @throws Refused for an invalid credential; Error for every other failure */
async function call<T>(method: string, path: string, token: string | null, body?: object): Promise<T> {
  const response = await fetch(path, {
    method,
    credentials: 'omit',
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const answer: unknown = await response.json();
  if (response.ok) return answer as T;
  const { message } = answer as { message: string };
  throw response.status === 401 ? new Refused(message) : new Error(`${path}: ${message}`);
}
