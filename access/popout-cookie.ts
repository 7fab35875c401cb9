import { SERVICE } from '../domain/vendors';

/** The cookie that holds a popout page's session. Source: spec doc1 §5.5. */
export const POPOUT_COOKIE = `${SERVICE}-popout-token`;

/** `Set-Cookie` of a session; scripts never see it, and pages from elsewhere do not send it with what they post. */
export const popoutCookie = (session: string, { max_age_s, secure }: { max_age_s: number; secure: boolean }): string =>
  `${POPOUT_COOKIE}=${session}; Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}; Max-Age=${max_age_s}`;

/** The session in a `Cookie` header, which only a popout page has; undefined when there is none. */
export function popoutSessionIn(cookie: string | undefined): string | undefined {
  for (const pair of cookie?.split(';') ?? []) {
    const [name, value] = [pair.slice(0, pair.indexOf('=')).trim(), pair.slice(pair.indexOf('=') + 1).trim()];
    if (name === POPOUT_COOKIE && value !== '') return value;
  }
  return undefined;
}
