/** Claims of a JWT about the OAuth client that holds it (RFC 9068 names them); part of {@link Claims}. */
export interface ClientClaims {
  client_id: string;
  /** The user's grant; null where the client acts for its own account. */
  grant_id: string | null;
  /** Scopes of this token. */
  scopes: readonly string[];
}

export const clientMembers = ({ client_id, grant_id, scopes }: ClientClaims): Record<string, string> => ({
  client_id,
  ...(grant_id !== null && { grant_id }),
  scope: scopes.join(' '),
});

/** Null for a token without a client. */
export function clientOf({ client_id, grant_id, scope }: Record<string, unknown>): ClientClaims | null {
  if (typeof client_id !== 'string') return null;
  return {
    client_id,
    grant_id: typeof grant_id === 'string' ? grant_id : null,
    scopes: typeof scope === 'string' ? scope.split(' ').filter(Boolean) : [],
  };
}
