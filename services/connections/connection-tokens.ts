import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { EventStore } from '../../engines/event-store/port';
import type { Logger } from '../../engines/log/port';
import type { Database } from '../../engines/postgres/port';
import type { SecretBox } from '../../privacy/secrets/port';
import type { PersonalTexts } from '../../privacy/subject-keys/port';
import type { Wakeups } from '../../engines/wakeups/port';
import { retry } from '../../lib/async/retry';
import type { Settings } from '../../kernel/settings/settings';
import { Signal } from '../../lib/async/signal';
import { AppRefused, GrantRefused, VendorUnavailable, type OAuthVendor } from '../../vendors/oauth/port';
import { sayReconnect } from './connection-flags';
import { claimRefresh, markDead, readGrant, readGrantRow, releaseRefresh, writeRefreshed } from './connection-grants';
import type { GrantRow, KeptGrant } from './connection-grants';
import { appOfGrant } from './oauth-apps';
import { readSeToken, refuseSeToken } from './se-tokens';

/** The vendor accepts none of the stored tokens: somebody must log in there again. The connection is flagged. */
export class ReconnectRequired extends Error {
  override readonly name = 'ReconnectRequired';
  constructor(readonly connection_id: string) {
    super(`connection ${connection_id} must be connected again`);
  }
}

/** No token for the moment: the vendor does not answer, or another node's refresh does not finish. */
export class TokenUnavailable extends Error {
  override readonly name = 'TokenAway';
  constructor(
    readonly connection_id: string,
    readonly retry_after_ms?: number,
    options?: ErrorOptions,
  ) {
    super(`connection ${connection_id} has no token now`, options);
  }
}

/** Provides access tokens of connections, valid for the next call to the vendor. */
export interface ConnectionTokens {
  /**
   * Returns the access token, refreshed when it is about to expire or is the `refused` one, which the vendor has just
   * answered with 401. One refresh runs at a time over all nodes. `connection_id` may also name a tip token, which
   * cannot be refreshed.
   * @throws ReconnectRequired when the vendor accepts no stored token, or none is stored; the connection is flagged
   * @throws TokenAway while no token is available
   */
  token(connection_id: string, refused?: string): Promise<string>;
}

export interface ConnectionTokensDeps {
  db: Database;
  texts: PersonalTexts;
  secrets: SecretBox;
  settings: Settings;
  events: EventStore;
  wakeups: Wakeups;
  log: Logger;
  vendors: ReadonlyMap<string, OAuthVendor>;
}

/** Remaining lifetime below which a token is refreshed before use. */
const EARLY_MS = 60_000;
/** Longer than a call to the vendor plus the write of its answer. */
const CLAIM_MS = 45_000;
/** Time for retrying the write of an answer, because the vendor may give it only once. */
const KEEP_WITHIN_MS = 25_000;
/** Wait for another node's refresh. */
const PATIENCE_MS = 20_000;
const LOOK_MS = 500;
/** Age below which a refused token is not refreshed again, to prevent a loop. */
const FRESH_MS = 60_000;
/** Time without further calls for a connection after its vendor did not answer. */
const AWAY_MS = 5_000;
/** Remaining lifetime that an unrefreshed token needs to be used once more. */
const USABLE_MS = 5_000;
/** Wakeup after each refresh, whether it succeeded or failed. */
const REFRESHED = 'connection-tokens';

/**
 * {@link ConnectionTokens} over sealed rows. The refresh lease is an expiring mark in the row, because a row lock would
 * hold a database connection during the vendor's call. The answer is stored before any caller receives it, on the
 * condition that the refreshed tokens are still the stored ones: a stalled process cannot overwrite a later refresh,
 * and a slow one does not lose its answer. A crash between the vendor's answer and the write loses the answer where the
 * vendor rotates refresh tokens: the next attempt is refused and the connection flagged.
 */
export function createConnectionTokens(deps: ConnectionTokensDeps): ConnectionTokens {
  const { db, wakeups, log, vendors } = deps;
  /** Running refreshes of this process, shared by its callers. */
  const under_way = new Map<string, Promise<void>>();
  /** Connections whose vendor did not answer, so that not every caller calls it again. */
  const away = new LRUCache<string, TokenUnavailable>({ max: 10_000, ttl: AWAY_MS });

  async function token(connection_id: string, refused?: string): Promise<string> {
    const give_up = performance.now() + PATIENCE_MS;
    for (;;) {
      const kept = await readGrant(deps, connection_id);
      if (kept === null) {
        const erased = await readGrantRow(db, connection_id);
        if (erased === null) return tipToken(connection_id, refused);
        await flag(erased);
      } else if (kept.dead) await flag(kept);
      else if (kept.access_token !== refused && !aboutToEnd(kept)) return kept.access_token;
      else if (performance.now() >= give_up) throw new TokenUnavailable(connection_id);
      else if (!(await refreshed(kept, refused))) return kept.access_token;
    }
  }

  /** A token with a lifetime under twice {@link EARLY_MS} is refreshed at its half. */
  function aboutToEnd({ expires_at, stored_at }: KeptGrant): boolean {
    if (expires_at === null) return false;
    const early = Math.min(EARLY_MS, (expires_at - stored_at) / 2);
    return expires_at - Date.now() < early;
  }

  /** Returns false when the refresh fails and the stored token is valid for a while. */
  async function refreshed(kept: KeptGrant, refused: string | undefined): Promise<boolean> {
    const { connection_id, access_token, expires_at } = kept;
    try {
      const missed = away.get(connection_id);
      if (missed !== undefined) throw missed;
      let one = under_way.get(connection_id);
      if (one === undefined) {
        one = refreshOnce(kept, access_token === refused).finally(() => under_way.delete(connection_id));
        under_way.set(connection_id, one);
      }
      await one;
      return true;
    } catch (error) {
      if (error instanceof TokenUnavailable && access_token !== refused && expires_at! - Date.now() > USABLE_MS)
        return false;
      throw error;
    }
  }

  async function refreshOnce(kept: KeptGrant, after_refusal: boolean): Promise<void> {
    const { connection_id } = kept;
    // Another refresh would not help; a new login may.
    if (after_refusal && kept.after_refusal && Date.now() - kept.stored_at < FRESH_MS) return flag(kept);
    const holder = randomUUID();
    if (!(await claimRefresh(db, kept, { holder, for_ms: CLAIM_MS }))) return otherRefresh(connection_id);
    let stored = false;
    try {
      const grant = await requestTokens(kept);
      // Retried, because the vendor may accept only the new tokens by now.
      const written = await retry(() => writeRefreshed(deps, kept, { grant, after_refusal }), {
        first_ms: 50,
        most_ms: 2_000,
        within_ms: KEEP_WITHIN_MS,
        passing: () => true,
      });
      if (written === 'revived') await sayReconnect(deps.events, 'clear_reconnect', kept);
      stored = true;
    } catch (error) {
      if (error instanceof GrantRefused) return await flag(kept);
      if (!(error instanceof VendorUnavailable)) throw error;
      const missed = new TokenUnavailable(connection_id, error.retry_after_ms, { cause: error });
      away.set(connection_id, missed);
      throw missed;
    } finally {
      if (!stored) await releaseRefresh(db, connection_id, holder);
      wakeups.notify(REFRESHED);
    }
  }

  async function requestTokens(kept: KeptGrant) {
    const { connection_id, platform, client_id, refresh_token } = kept;
    const vendor = vendors.get(platform);
    if (vendor === undefined || refresh_token === null) throw new GrantRefused('there is nothing to refresh with');
    const app = await appOfGrant(deps, kept);
    if (app === null) throw new GrantRefused('its app is not ours any more');
    try {
      return await vendor.refresh(app, refresh_token);
    } catch (error) {
      if (!(error instanceof AppRefused)) throw error;
      // The operator must correct a wrong secret; sending people to the vendor's login would not help.
      log.error({ connection_id, platform, client_id }, 'the vendor does not take the secret of the app');
      throw new VendorUnavailable(platform, undefined, { cause: error });
    }
  }

  /** Waits for the process that holds the refresh lease, or for {@link LOOK_MS}. */
  async function otherRefresh(connection_id: string): Promise<void> {
    log.debug({ connection_id }, 'another process refreshes this token');
    const ended = new Signal();
    const off = wakeups.on(REFRESHED, ended.raise);
    await ended.wait(LOOK_MS);
    off();
  }

  /** Flags the connection, unless somebody has logged in there meanwhile. Always throws when its tokens stay dead. */
  async function flag(kept: GrantRow): Promise<void> {
    const { connection_id } = kept;
    if (!kept.dead && !(await markDead(db, kept))) return;
    await sayReconnect(deps.events, 'require_reconnect', kept);
    // A login between the mark and the event has made the flag obsolete.
    if ((await readGrantRow(db, connection_id))?.generation !== kept.generation)
      await sayReconnect(deps.events, 'clear_reconnect', kept);
    throw new ReconnectRequired(connection_id);
  }

  async function tipToken(token_id: string, refused: string | undefined): Promise<string> {
    const kept = await readSeToken(deps, token_id);
    if (kept === null || kept.refused) throw new ReconnectRequired(token_id);
    if (kept.token !== refused) return kept.token;
    await refuseSeToken(db, token_id);
    throw new ReconnectRequired(token_id);
  }

  return { token };
}
