import { v7 } from 'uuid';
import type { Caller, RequestContext } from '../access/caller';
import { newId } from '../access/event-ids';
import type { Services } from '../access/services';
import { hashJti, type SignedToken } from '../access/tokens';
import { DomainError } from '../kernel/errors';

/**
 * Sessions are rows, not events: they are keyed by the hash of the refresh token's `jti`, rotate with every refresh,
 * and end 30 days after the login whatever the rotation. Source: spec doc1 §5.3 rule 7, rulings "tokens".
 */
export interface SessionTokens {
  session_id: string;
  user_id: string;
  access: SignedToken;
  refresh: SignedToken;
}

type Needs = Pick<Services, 'db' | 'tokens' | 'settings'>;

/** Opens a session for the user; `now` in Unix milliseconds. */
export async function openSession(
  services: Needs,
  user_id: string,
  account_id: string | null,
  now: number,
): Promise<SessionTokens> {
  const session_id = v7();
  const ends_at = now + services.settings.auth.session_lifetime;
  const signed = await signPair(services, { session_id, user_id, account_id, ends_at }, now);
  await services.db.query(
    `insert into sessions (id, user_id, refresh_jti_hash, created_at, refreshed_at, expires_at)
     values ($1, $2, $3, to_timestamp($4 / 1000.0), to_timestamp($4 / 1000.0), to_timestamp($5 / 1000.0))`,
    [session_id, user_id, hashJti(signed.refresh.jti), now, ends_at],
  );
  return signed;
}

/**
 * Trades a refresh token for new ones; it stops working at once, also when two calls trade it together. A call that was
 * made and never answered is answered when it is repeated: the new token's id derives from its Idempotency-Key.
 * @throws DomainError `REFUSED_REFRESH_TOKEN`
 */
export async function refreshSession(
  services: Needs,
  refresh_token: string,
  context: Pick<RequestContext, 'now' | 'idempotency_seed'>,
): Promise<SessionTokens> {
  const { now } = context;
  const { claims, failure } = await services.tokens.verify(refresh_token, now);
  const session_id = claims?.session_id;
  if (failure !== null || claims.use !== 'refresh' || !session_id) throw refused();
  const jti = context.idempotency_seed === null ? undefined : newId(context, `refresh ${claims.jti}`);
  const [presented, own] = [hashJti(claims.jti), jti === undefined ? null : hashJti(jti)];
  const [session] = await services.db.query(
    `select s.user_id, (extract(epoch from s.expires_at) * 1000)::float8 as ends_at, m.account_id,
       s.refresh_jti_hash is not distinct from $5 as traded
     from sessions s left join account_members m on m.user_id = s.user_id and m.account_id = $3
     where s.id = $1 and s.refresh_jti_hash in ($2, $5) and s.expires_at > to_timestamp($4 / 1000.0)`,
    [session_id, presented, claims.account_id, now, own],
  );
  if (session === undefined) throw refused();
  const { user_id, account_id, ends_at, traded } = session;
  const signed = await signPair(services, { session_id, user_id, account_id, ends_at }, now, jti);
  if (traded) return signed;
  const moved = await services.db.query(
    `update sessions set refresh_jti_hash = $3, refreshed_at = to_timestamp($4 / 1000.0)
     where id = $1 and refresh_jti_hash = $2 returning id`,
    [session_id, presented, hashJti(signed.refresh.jti), now],
  );
  if (moved.length === 0) throw refused();
  return signed;
}

/**
 * The session that a refresh token belongs to, however old the token is.
 * @throws DomainError `REFUSED_REFRESH_TOKEN` when it is not a refresh token of ours
 */
export async function sessionOf(
  services: Pick<Services, 'tokens'>,
  refresh_token: string,
  now: number,
): Promise<string> {
  const { claims } = await services.tokens.verify(refresh_token, now);
  if (claims === null || claims.use !== 'refresh' || claims.session_id === null) throw refused();
  return claims.session_id;
}

/** Ends the session on every node; nothing happens when it had ended before. */
export async function endSession(services: Pick<Services, 'db' | 'access'>, session_id: string): Promise<void> {
  await services.db.query(
    `with ended as (delete from sessions where id = $1 returning id)
     insert into revocations (credential_id) select id::text from ended`,
    [session_id],
  );
  await services.access.announce({ credential_id: session_id });
}

/**
 * A token for the WebSocket upgrade alone. It is bound to what minted it, so it ends with that. Source: spec doc1 §5.3
 * rule 4, rulings "ws tokens".
 */
export async function mintWsToken(
  services: Needs,
  caller: Pick<Caller, 'kind' | 'account_id' | 'credential_id'> & { user_id: string },
  now: number,
): Promise<SignedToken> {
  const signed = await services.tokens.sign(
    { sub: caller.user_id, account_id: caller.account_id, session_id: null, use: 'ws' },
    now,
    services.settings.auth.ws_token_expiration,
  );
  await services.db.query(
    `insert into ws_tokens (jti_hash, parent_kind, parent_id, expires_at) values ($1, $2, $3, to_timestamp($4 / 1000.0))`,
    [hashJti(signed.jti), caller.kind === 'jwt' ? 'session' : caller.kind, caller.credential_id, signed.expires_at],
  );
  return signed;
}

async function signPair(
  { tokens, settings }: Needs,
  session: { session_id: string; user_id: string; account_id: string | null; ends_at: number },
  now: number,
  refresh_jti?: string,
): Promise<SessionTokens> {
  const { session_id, user_id, account_id, ends_at } = session;
  const claims = { sub: user_id, account_id, session_id };
  const left = ends_at - now;
  const access = await tokens.sign(
    { ...claims, use: 'access' },
    now,
    Math.min(settings.auth.access_token_expiration, left),
  );
  const refresh = await tokens.sign({ ...claims, use: 'refresh', jti: refresh_jti }, now, left);
  return { session_id, user_id, access, refresh };
}

const refused = () => new DomainError('REFUSED_REFRESH_TOKEN');
