import { ReconnectRequired, TokenAway, type ConnectionTokens } from '../../access/connection-tokens';
import { withToken } from '../../access/with-token';
import { HttpFailed } from '../../vendors/http/port';

/** So many connections are tried before a look is given up. */
const MOST = 3;

/** The next token may be taken where this one is not. */
const isOfTokenAlone = (error: unknown): boolean =>
  error instanceof ReconnectRequired ||
  error instanceof TokenAway ||
  (error instanceof HttpFailed && error.status === 403);

/**
 * A call that any of these connections may make, with the token of the first that has one.
 * @throws what the call throws; ReconnectRequired, TokenAway or HttpFailed 403 of the last that was tried
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
