import { LRUCache } from 'lru-cache';

/** Apps whose pauses are remembered, accounts' own among them. One that is forgotten asks, and is told again. */
const MOST_APPS = 10_000;

/** Until when apps may not ask: Spotify counts the calls of an app, whoever's player they are about. */
export class AppPauses {
  private readonly until = new LRUCache<string, number>({ max: MOST_APPS });

  /** Milliseconds until the app may ask again; of one that is not known, 0. */
  left(client_id: string | null | undefined): number {
    if (!client_id) return 0;
    const left_ms = (this.until.get(client_id) ?? 0) - performance.now();
    if (left_ms <= 0) this.until.delete(client_id);
    return Math.max(left_ms, 0);
  }

  begin(client_id: string | null | undefined, ms: number): void {
    if (client_id) this.until.set(client_id, performance.now() + ms);
  }
}
