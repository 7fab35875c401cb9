/** A connection on a channel. */
export interface PresenceMember {
  /** The connection's id, unique among all nodes. */
  id: string;
  /** Public description of the connection, as JSON text. */
  info: string;
}

/**
 * Connections on each channel, on all nodes. Entries belong to the node that made them and are removed within seconds
 * after it ends or dies. When the engine loses entries (a flush, a restart), the nodes write them again. While it is
 * unavailable, a node lists its own connections.
 */
export interface Presence {
  /** Adds a connection; a known id replaces its info. */
  join(channel: string, member: PresenceMember): Promise<void>;
  /** Removes a connection; an unknown id is no error. */
  leave(channel: string, id: string): Promise<void>;
  /** Ordered by id. */
  list(channel: string): Promise<PresenceMember[]>;
  /** Ends all of this node's entries. */
  close(): Promise<void>;
}
