/**
 * Numbers of the WebSocket service. Sources: spec doc3 §4.1, limits.json `ws.*`, rulings "socket closes"; the rest is
 * ours, with its reason.
 */
export const LIMITS = {
  /** A larger text frame is answered with `MESSAGE_TOO_LARGE`; the session stays. */
  frame_bytes: 64 * 1024,
  /** Beyond this a frame is not even read: error, then close 1009. */
  payload_bytes: 256 * 1024,
  /** Fragments of one message, and pieces held before a frame is whole: tiny fragments are a memory attack. */
  fragments: 256,
  buffered_chunks: 4096,
  /** Messages waiting for one session beyond the one write that its socket is busy with. */
  queue_messages: 256,
  /** Bytes waiting for one session beyond that write. */
  queue_bytes: 4 * 1024 * 1024,
  silence_ms: 30_000,
  stall_ms: 30_000,
  /**
   * A backlogged socket that drained nothing for this long is slow: its channels are dropped once the queue is full.
   * Below it a burst is only a burst.
   */
  grace_ms: 1_000,
  heartbeat_ms: 5_000,
  revalidate_ms: 30_000,
  /** Channels of one session. */
  subscriptions: 256,
  channel_name: 200,
  /** Client messages that one session gets answered per second; the rest waits in its socket. */
  client_messages_per_second: 200,
  /** Small messages that wait for their turn while the socket is still read. */
  inbox_messages: 16,
  /** A larger message that waits keeps its socket from being read. */
  inbox_message_bytes: 1024,
  /** A bare `ping` costs no unit when the free one before it is this old: half of what the project's client waits. */
  free_ping_ms: 5_000,
  /** Units of a message that is refused for its form. */
  refused_units: 5,
  /** A socket that sends as many refused messages one after another is closed. */
  refused_in_a_row: 100,
  /** Longest wait for units after a refused message; a longer one closes the socket, which is not read meanwhile. */
  refused_wait_ms: 1_000,
  /** Nesting and members of a client message: its own are four, a payload is a text. */
  message_bounds: { depth: 8, members: 32 },
  /** Of the JSON in a broadcast: a deep one costs its parser many times what a flat one does. */
  payload_bounds: { depth: 64, members: Infinity },
  headers: 100,
  /** `Retry-After` for a caller with too many sockets: a heartbeat, after which dead ones may have been found. */
  retry_after_seconds: 5,
} as const;

export const CLOSE = {
  token: 4401,
  silence: 4408,
  stalled: 4413,
  restart: 1012,
  too_large: 1009,
  refused: 1008,
} as const;
