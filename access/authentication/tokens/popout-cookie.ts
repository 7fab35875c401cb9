import { SERVICE } from '../../../domain/common/vendors';

/** The cookie that holds a popout page's session. Source: spec doc1 §5.5. */
export const POPOUT_COOKIE = `${SERVICE}-popout-token`;

/** `Set-Cookie` of a session; hidden from scripts, and not sent with cross-site POST requests. */
export const popoutCookie = (session: string, { max_age_s, secure }: { max_age_s: number; secure: boolean }): string =>
  `${POPOUT_COOKIE}=${session}; Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}; Max-Age=${max_age_s}`;

/** The popout session in a `Cookie` header; undefined without one. */
export function popoutSessionIn(cookie: string | undefined): string | undefined {
  for (const pair of cookie?.split(';') ?? []) {
    const [name, value] = [pair.slice(0, pair.indexOf('=')).trim(), pair.slice(pair.indexOf('=') + 1).trim()];
    if (name === POPOUT_COOKIE && value !== '') return value;
  }
  return undefined;
}
