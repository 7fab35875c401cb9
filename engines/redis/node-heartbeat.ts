import { randomUUID } from 'node:crypto';
import type { Logger } from '../log/port';
import type { RedisLink } from './connection';

/** Options of adapters whose entries belong to a node. */
export interface NodeOptions {
  link: RedisLink;
  /** Prefix of every name in Redis, so that several installations may share one server. */
  prefix: string;
  log: Logger;
  /** Time without a beat after which a node counts as dead. Default 10 s. */
  node_ttl_ms?: number;
}

/** Hooks by which an adapter keeps the entries of its node. */
export interface NodeUpkeep {
  /** Writes all entries of this node: on a new connection, after Redis lost data, and every 20 minutes. */
  tellAll(): Promise<void>;
  /** Called with each beat. */
  onBeat?(): Promise<void>;
}

/** Expiry of a node's entries after their last write. */
export const HEARTBEAT_TTL_MS = 3_600_000;
/** Fields sent in one command. */
export const PAGE = 500;

/**
 * Shows other nodes that this one is alive, by a key that expires unless renewed. Entries of a dead node are ignored,
 * so that no other node needs to delete each of them.
 */
export class NodeHeartbeat {
  /** Mark of this node's entries. */
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
    // The server of a new connection may have lost all data.
    this.end = options.link.onReady(() => {
      this.untold();
      void this.beat();
    });
    this.timer = setInterval(() => void this.beat(), this.ttl_ms / 4);
    this.timer.unref();
    if (options.link.usable()) void this.beat();
  }

  /** The expiring key of a node. */
  keyOf = (name: string): string => `${this.options.prefix}node:${name}`;

  /** Marks entries as incomplete in Redis: the next beat writes all of them. */
  untold(): void {
    this.told_at = 0;
  }

  /**
   * Invalidates the entries in Redis: the next beat takes a new name and writes all, so that the old ones are ignored.
   */
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
      if (known === null || Date.now() - this.told_at > HEARTBEAT_TTL_MS / 3) {
        this.told_at = Date.now();
        await this.upkeep.tellAll();
      }
      await this.upkeep.onBeat?.();
    } catch (error) {
      log.debug({ err: error }, 'what this node has in Redis could not be renewed; it is tried again');
      // The entries are written in part at best: the next beat writes all of them again.
      this.untold();
    } finally {
      this.beating = false;
    }
  }

  /** Deletes the node's key, so that the node counts as dead at once. */
  async close(): Promise<void> {
    this.closed = true;
    clearInterval(this.timer);
    this.end();
    await this.options.link.client
      .del(this.keyOf(this.name))
      .catch((error: unknown) => this.options.log.debug({ err: error }, 'a node ends when its key expires'));
  }
}
