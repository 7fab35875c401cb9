import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { EventStore } from '../engines/event-store/port';
import type { Logger } from '../engines/log/port';
import type { Database } from '../engines/postgres/port';
import type { SecretBox } from '../engines/secrets/port';
import type { PersonalTexts } from '../engines/subject-keys/port';
import type { Wakeups } from '../engines/wakeups/port';
import { retry } from '../kernel/retry';
import type { Settings } from '../kernel/settings';
import { Signal } from '../kernel/signal';
import { AppRefused, GrantRefused, VendorAway, type OAuthVendor } from '../vendors/oauth/port';
import { sayReconnect } from './connection-flags';
import { claimRefresh, markDead, readGrant, readGrantRow, releaseRefresh, writeRefreshed } from './connection-grants';
import type { GrantRow, KeptGrant } from './connection-grants';
import { appOfGrant } from './oauth-apps';
import { readSeToken, refuseSeToken } from './se-tokens';

/** The vendor takes none of the tokens that are kept: somebody must log in there again. The connection is flagged. */
export class ReconnectRequired extends Error {
  override readonly name = 'ReconnectRequired';
  constructor(readonly connection_id: string) {
    super(`connection ${connection_id} must be connected again`);
  }
}

/** There is no token now, and there may be one later: the vendor does not answer, or another node's try has no end. */
export class TokenAway extends Error {
  override readonly name = 'TokenAway';
  constructor(
    readonly connection_id: string,
    readonly retry_after_ms?: number,
    options?: ErrorOptions,
  ) {
    super(`connection ${connection_id} has no token now`, options);
  }
}

/** Access tokens of connections, good for the next call to the vendor. */
export interface ConnectionTokens {
  /**
   * Its access token, a new one where the old is about to end or is the `refused` one, to which the vendor has just
   * answered 401. One refresh runs at a time over all nodes. `connection_id` may also name a tip token, which nobody
   * can refresh.
   * @throws ReconnectRequired when the vendor takes none of what is kept, or nothing is kept; the connection is flagged
   * @throws TokenAway while there is none
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

/** A token with less time than this is exchanged before it is used. */
const EARLY_MS = 60_000;
/** Longer than a call to the vendor and the write of its answer may take together. */
const CLAIM_MS = 45_000;
/** How long the answer is tried to be kept: what the vendor gave may be there once only. */
const KEEP_WITHIN_MS = 25_000;
/** How long it is waited for another node's refresh. */
const PATIENCE_MS = 20_000;
const LOOK_MS = 500;
/** A new token that the vendor refuses so soon is not exchanged again and again. */
const FRESH_MS = 60_000;
/** How long a vendor that did not answer is not asked for the same again. */
const AWAY_MS = 5_000;
/** What a token that could not be exchanged must have left to be used once more. */
const USABLE_MS = 5_000;
/** Told after a refresh has ended, however it did. */
const REFRESHED = 'connection-tokens';

/**
 * {@link ConnectionTokens} over sealed rows. The right to refresh is a mark in the row that ends by itself, since a row
 * lock would hold a database connection for as long as the vendor takes. The answer is stored before anybody gets it,
 * on the condition that the tokens it came of are still the ones that are kept: a process that was away while another
 * one refreshed does not overwrite, and one that was merely slow is not lost. What a crash loses between the vendor's
 * answer and our write is lost where the vendor rotates refresh tokens: the next try is then refused, and the
 * connection is flagged.
 */
export function createConnectionTokens(deps: ConnectionTokensDeps): ConnectionTokens {
  const { db, wakeups, log, vendors } = deps;
  /** Refreshes of this process, so that many callers ask the database once. */
  const under_way = new Map<string, Promise<void>>();
  /** Vendors that did not answer for these, so that not each caller asks them again. */
  const away = new LRUCache<string, TokenAway>({ max: 10_000, ttl: AWAY_MS });

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
      else if (performance.now() >= give_up) throw new TokenAway(connection_id);
      else if (!(await refreshed(kept, refused))) return kept.access_token;
    }
  }

  /** A token that lives less than twice as long as it would be exchanged early is exchanged at its half. */
  function aboutToEnd({ expires_at, stored_at }: KeptGrant): boolean {
    if (expires_at === null) return false;
    const early = Math.min(EARLY_MS, (expires_at - stored_at) / 2);
    return expires_at - Date.now() < early;
  }

  /** False where the vendor gives none, and the one that is there is good for a while yet. */
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
      if (error instanceof TokenAway && access_token !== refused && expires_at! - Date.now() > USABLE_MS) return false;
      throw error;
    }
  }

  async function refreshOnce(kept: KeptGrant, after_refusal: boolean): Promise<void> {
    const { connection_id } = kept;
    // A login again may help, another refresh would not.
    if (after_refusal && kept.after_refusal && Date.now() - kept.stored_at < FRESH_MS) return flag(kept);
    const holder = randomUUID();
    if (!(await claimRefresh(db, kept, { holder, for_ms: CLAIM_MS }))) return otherRefresh(connection_id);
    let stored = false;
    try {
      const grant = await askVendor(kept);
      // The vendor may know only this one by now.
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
      if (!(error instanceof VendorAway)) throw error;
      const missed = new TokenAway(connection_id, error.retry_after_ms, { cause: error });
      away.set(connection_id, missed);
      throw missed;
    } finally {
      if (!stored) await releaseRefresh(db, connection_id, holder);
      wakeups.notify(REFRESHED);
    }
  }

  async function askVendor(kept: KeptGrant) {
    const { connection_id, platform, client_id, refresh_token } = kept;
    const vendor = vendors.get(platform);
    if (vendor === undefined || refresh_token === null) throw new GrantRefused('there is nothing to refresh with');
    const app = await appOfGrant(deps, kept);
    if (app === null) throw new GrantRefused('its app is not ours any more');
    try {
      return await vendor.refresh(app, refresh_token);
    } catch (error) {
      if (!(error instanceof AppRefused)) throw error;
      // A wrong secret is the operator's to mend, and no reason to send people to the vendor's login.
      log.error({ connection_id, platform, client_id }, 'the vendor does not take the secret of the app');
      throw new VendorAway(platform, undefined, { cause: error });
    }
  }

  /** Another node, or a try that has died, has the right to refresh. */
  async function otherRefresh(connection_id: string): Promise<void> {
    log.debug({ connection_id }, 'another process refreshes this token');
    const ended = new Signal();
    const off = wakeups.on(REFRESHED, ended.raise);
    await ended.wait(LOOK_MS);
    off();
  }

  /** Flags the connection, unless somebody has logged in there meanwhile. Always throws where its tokens stay dead. */
  async function flag(kept: GrantRow): Promise<void> {
    const { connection_id } = kept;
    if (!kept.dead && !(await markDead(db, kept))) return;
    await sayReconnect(deps.events, 'require_reconnect', kept);
    // Who logged in between the mark and the event is not asked to do it again.
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
