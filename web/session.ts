import { Refused } from '../clients/js/index';

/** Who watches: whose events, and how each connection gets its token. */
export interface Session {
  account_id: string;
  wsToken(): Promise<string>;
}

const KEPT = 'lumio-token';
const POPOUT = 'lm_pop_';
/** What the page reads, and nothing else: a token for hours may do no more. */
const READS = ['events:read', 'chat:read', 'spotify:read'];
const HOURS_12 = 12 * 3_600_000;

export const tokenInAddress = (): string | null => new URLSearchParams(location.hash.slice(1)).get('token');

/**
 * The token of the fragment, else the one that this tab had before a reload; null for a stranger. The fragment leaves
 * the address at once, so that nobody copies it with the link.
 */
export function givenToken(): string | null {
  const given = tokenInAddress();
  if (given !== null) {
    history.replaceState(null, '', location.pathname);
    keep(given);
  }
  return given ?? sessionStorage.getItem(KEPT);
}

export const keep = (token: string): void => sessionStorage.setItem(KEPT, token);
export const forget = (): void => sessionStorage.removeItem(KEPT);

/**
 * Who a token is. A session's own token lives for minutes, so a read-only popout token is made of it, which the page
 * goes on with; where that is refused it goes on with what it has, until that ends.
 * @throws Refused when the token is nobody's
 */
export async function openSession(token: string): Promise<Session> {
  if (token.startsWith(POPOUT)) return popoutSession(token);
  const { data } = await call<{ data: { active_account_id: string | null } }>('GET', '/v1/users/me', token);
  const { active_account_id: account_id } = data;
  if (account_id === null) throw new Refused('The token has no active account');
  const popout = await madePopout(token);
  if (popout !== null) {
    keep(popout);
    return popoutSession(popout);
  }
  return { account_id, wsToken: () => wsToken('/v1/auth/ws-token', token) };
}

async function madePopout(token: string): Promise<string | null> {
  const expires_at = new Date(Date.now() + HOURS_12).toISOString();
  try {
    const made = await call<{ data: { token: string } }>('POST', '/v1/tokens', token, {
      label: 'Live page',
      permissions: READS,
      expires_at,
    });
    return made.data.token;
  } catch (error) {
    console.warn('the page goes on with the token that it was given:', error);
    return null;
  }
}

async function popoutSession(popout: string): Promise<Session> {
  const exchanged = async () => {
    const body = { token: popout };
    type Exchanged = { data: { token: string; account_id: string } };
    return (await call<Exchanged>('POST', '/v1/auth/popout/exchange', null, body)).data;
  };
  const { account_id } = await exchanged();
  // A session of its own for each connection: none is too old when it is needed.
  return { account_id, wsToken: async () => wsToken('/v1/auth/popout/ws-token', (await exchanged()).token) };
}

async function wsToken(path: string, token: string): Promise<string> {
  return (await call<{ data: { ws_token: string } }>('POST', path, token, {})).data.ws_token;
}

/** @throws Refused when the credential does not count; Error for every other refusal */
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
