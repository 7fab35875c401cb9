import { ReconnectRequired, TokenAway, type ConnectionTokens } from '../../access/connection-tokens';
import { withToken } from '../../access/with-token';

/** So many connections are tried before a look is given up. */
const MOST = 3;

/**
 * A call that any of these connections may make, with the token of the first that has one.
 * @throws what the call throws; ReconnectRequired or TokenAway of the last that was tried
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
      if (!(error instanceof ReconnectRequired) && !(error instanceof TokenAway)) throw error;
      none = error;
    }
  }
  throw none;
}
