import { randomUUID } from 'node:crypto';
import type { Logger } from '../log/port';
import type { RedisLink } from './connection';

/** What adapters are made with whose entries belong to a node. */
export interface NodeOptions {
  link: RedisLink;
  /** Before every name in Redis, so that several installations may share one server. */
  prefix: string;
  log: Logger;
  /** A node that has not been heard of for this long is dead. Default 10 s. */
  node_ttl_ms?: number;
}

/** What a node does to keep its entries. */
export interface NodeUpkeep {
  /** Tells Redis all that this node has there: on a new connection, after Redis forgot, and every 20 minutes. */
  tellAll(): Promise<void>;
  /** With each beat; default: nothing. */
  onBeat?(): Promise<void>;
}

/** What a node keeps in Redis lives this long after it was last told. */
export const TOLD_TTL_MS = 3_600_000;
/** Fields sent in one command. */
export const PAGE = 500;

/**
 * Shows other nodes that this one lives, by a key that expires unless it is renewed: what a dead node has in Redis then
 * counts for nothing, and costs nobody a write for each entry.
 */
export class LivingNode {
  /** What this node's entries are marked with. */
  name: string = randomUUID();
  private told_at = 0;
  private old_name: string | null = null;
  private beating = false;
  private closed = false;
  private readonly timer: NodeJS.Timeout;
  private readonly end: () => void;
  private readonly ttl_ms: number;

  constructor(
    private readonly options: NodeOptions,
    private readonly upkeep: NodeUpkeep,
  ) {
    this.ttl_ms = options.node_ttl_ms ?? 10_000;
    // A new connection may be to a server that has forgotten everything.
    this.end = options.link.onReady(() => {
      this.untold();
      void this.beat();
    });
    this.timer = setInterval(() => void this.beat(), this.ttl_ms / 4);
    this.timer.unref();
    if (options.link.usable()) void this.beat();
  }

  /** The key that a node of this name keeps alive. */
  keyOf = (name: string): string => `${this.options.prefix}node:${name}`;

  /** Something was not told: the next beat tells all. */
  untold(): void {
    this.told_at = 0;
  }

  /** What was told is wrong: under a new name it counts as a dead node's, and the next beat tells all again. */
  outdate(): void {
    this.old_name ??= this.name;
  }

  private async beat(): Promise<void> {
    const { link, log } = this.options;
    if (this.beating || this.closed || !link.usable()) return;
    this.beating = true;
    try {
      if (this.old_name !== null) {
        await link.client.del(this.keyOf(this.old_name));
        this.name = randomUUID();
        this.old_name = null;
      }
      const known = await link.client.set(this.keyOf(this.name), '1', 'PX', this.ttl_ms, 'GET');
      if (known === null || Date.now() - this.told_at > TOLD_TTL_MS / 3) {
        this.told_at = Date.now();
        await this.upkeep.tellAll();
      }
      await this.upkeep.onBeat?.();
    } catch (error) {
      log.debug({ err: error }, 'what this node has in Redis could not be renewed; it is tried again');
      // Told of in part at best: all of it goes again with the next beat.
      this.untold();
    } finally {
      this.beating = false;
    }
  }

  /** Without its key the node counts as dead at once. */
  async close(): Promise<void> {
    this.closed = true;
    clearInterval(this.timer);
    this.end();
    await this.options.link.client
      .del(this.keyOf(this.name))
      .catch((error: unknown) => this.options.log.debug({ err: error }, 'a node ends when its key expires'));
  }
}
