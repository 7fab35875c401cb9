import { HttpFailed } from '../vendors/http/port';

/** A token that works; `refused` names the one that the vendor has just refused. */
export type TokenSource = (refused?: string) => Promise<string>;

/**
 * A call with a token, made once more with another one where the vendor refuses it.
 * @throws what the call or the source throws
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
