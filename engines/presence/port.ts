/** One connection that is on a channel. */
export interface PresenceMember {
  /** The connection's id, unique among all nodes. */
  id: string;
  /** What others may see of it, as JSON text. */
  info: string;
}

/**
 * Who is connected on a channel, on all nodes. Entries are bound to the node that made them: when it ends or dies they
 * are gone within seconds. What the engine forgets (a flush, a restart) its nodes tell it again. While it is away a
 * node knows its own connections.
 */
export interface Presence {
  /** The same id again replaces its info. */
  join(channel: string, member: PresenceMember): Promise<void>;
  /** An id that is not there is no error. */
  leave(channel: string, id: string): Promise<void>;
  /** Ordered by id. */
  list(channel: string): Promise<PresenceMember[]>;
  /** Ends all of this node's entries. */
  close(): Promise<void>;
}
