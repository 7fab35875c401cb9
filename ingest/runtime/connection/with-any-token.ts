import {
  ReconnectRequired,
  TokenUnavailable,
  type ConnectionTokens,
} from '../../../services/connections/connection-tokens';
import { withToken } from '../../../services/connections/with-token';
import { HttpFailed } from '../../../vendors/http/port';

/** Maximum connections tried per call. */
const MOST = 3;

/** True for errors of this token, after which the next token may succeed. */
const isOfTokenAlone = (error: unknown): boolean =>
  error instanceof ReconnectRequired ||
  error instanceof TokenUnavailable ||
  (error instanceof HttpFailed && error.status === 403);

/**
 * Makes a call that any of these connections may make, with the first working token.
 * @throws the call's error; ReconnectRequired, TokenAway or HttpFailed 403 of the last tried connection
 */
export async function withAnyToken<C extends { connection_id: string }, T>(
  tokens: ConnectionTokens,
  connections: readonly C[],
  call: (token: string, connection: C) => Promise<T>,
): Promise<T> {
  let none: unknown = new Error('there is no connection');
  for (const connection of connections.slice(0, MOST)) {
    const source = (refused?: string) => tokens.token(connection.connection_id, refused);
    try {
      return await withToken(source, (token) => call(token, connection));
    } catch (error) {
      if (!isOfTokenAlone(error)) throw error;
      none = error;
    }
  }
  throw none;
}
