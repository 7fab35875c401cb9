import { HttpFailed } from '../../vendors/http/port';

/** Source of a valid token; `refused` is the token that the vendor has just refused. */
export type TokenSource = (refused?: string) => Promise<string>;

/**
 * Runs a call with a token, and once more with another one after a 401.
 * @throws the errors of the call and the source
 */
export async function withToken<T>(source: TokenSource, call: (token: string) => Promise<T>): Promise<T> {
  const token = await source();
  try {
    return await call(token);
  } catch (error) {
    if (!(error instanceof HttpFailed) || error.status !== 401) throw error;
    return call(await source(token));
  }
}
