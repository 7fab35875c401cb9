import { pause } from '../../../lib/async/signal';
import type { LinkedConnection, LinkedConnections } from '../../runtime/connection/adapter';

/** Minimum time between two lists that notifications of unknown channels cause. */
const APART_MS = 1_000;

/**
 * Connections of the channels that consented to one app, by channel: several accounts may have connected the same
 * channel. Flagged connections receive nothing, as over a socket.
 */
export class ConduitChannels {
  private listed: ReadonlyMap<string, readonly LinkedConnection[]> = new Map();
  private client_id: string | null = null;
  private listed_at = -Infinity;
  private next: Promise<void> | undefined;

  constructor(private readonly connections: Pick<LinkedConnections, 'list'>) {}

  /** Connections of a channel, as last listed. */
  of(channel_id: string): readonly LinkedConnection[] {
    return this.listed.get(channel_id)?.filter(({ flagged }) => !flagged) ?? [];
  }

  /** Channels connected to any account, flagged or not. */
  get ids(): readonly string[] {
    return [...this.listed.keys()];
  }

  /**
   * Lists again, soon: calls within {@link APART_MS} share one list, which begins after each of them.
   * @throws the database's error
   */
  refresh(client_id: string): Promise<void> {
    this.next ??= pause(this.listed_at + APART_MS - performance.now()).then(() => this.list(client_id));
    return this.next;
  }

  /** Lists again at once. */
  list(client_id: string): Promise<void> {
    this.next = undefined;
    [this.client_id, this.listed_at] = [client_id, performance.now()];
    return this.read(client_id);
  }

  private async read(client_id: string): Promise<void> {
    const by_channel = new Map<string, LinkedConnection[]>();
    for (const connection of await this.connections.list('twitch')) {
      if (connection.client_id !== client_id) continue;
      const { channel_id } = connection;
      by_channel.set(channel_id, [...(by_channel.get(channel_id) ?? []), connection]);
    }
    if (client_id === this.client_id) this.listed = by_channel;
  }
}
