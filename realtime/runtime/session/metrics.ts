import type { Counter, Gauge, Metrics } from '../../../engines/metrics/port';

/** A session whose socket did not take everything. */
interface Backlogged {
  readonly backlogged: { messages: number; bytes: number };
}

/**
 * Series of the WebSocket service; how many sessions and channels there are is asked for when metrics are read. Hot
 * paths add to plain numbers, and the ticker moves them over.
 */
export class RealtimeMetrics {
  /** Messages handed to sessions since the last {@link publish}. */
  sent = 0;
  private readonly sent_total: Counter;
  readonly dropped: Counter;
  readonly dropped_messages: Counter;
  private readonly blocked: Gauge;
  private readonly queued: Gauge;
  private readonly queued_bytes: Gauge;
  readonly holes: Counter;
  readonly relayed: Counter;
  readonly resumed: Counter;
  readonly closed: Counter;
  readonly refused: Counter;
  readonly tail_lag: Gauge;
  readonly tail_rows: Counter;

  constructor(metrics: Metrics) {
    this.sent_total = metrics.counter('lumio_websocket_messages_sent_total', 'Channel messages handed to sessions');
    this.dropped = metrics.counter(
      'lumio_websocket_channels_dropped_total',
      'Subscriptions ended with CHANNEL_DROPPED',
    );
    this.dropped_messages = metrics.counter(
      'lumio_websocket_messages_dropped_total',
      'Messages that sessions with CHANNEL_DROPPED did not get; those of the outbox can still be asked for with `since`',
    );
    this.blocked = metrics.gauge('lumio_websocket_blocked_sessions', 'Sessions whose socket did not take everything');
    this.queued = metrics.gauge('lumio_websocket_queued_messages', 'Messages that wait for sockets of this node');
    this.queued_bytes = metrics.gauge('lumio_websocket_queued_bytes', 'Bytes that wait for sockets of this node');
    this.holes = metrics.counter(
      'lumio_websocket_holes_total',
      'Channels stopped because a sequence number was missing',
    );
    this.relayed = metrics.counter('lumio_websocket_relay_messages_total', 'Messages received from the relay');
    this.resumed = metrics.counter('lumio_websocket_resumes_total', 'Subscribes with `since`, by result', [
      'recovered',
    ]);
    this.closed = metrics.counter('lumio_websocket_closed_total', 'Sessions closed by the server, by close code', [
      'code',
    ]);
    this.refused = metrics.counter('lumio_websocket_upgrades_refused_total', 'Upgrades refused, by HTTP status', [
      'status',
    ]);
    this.tail_lag = metrics.gauge('lumio_websocket_tail_lag_seconds', 'Age of the newest outbox row when it was read');
    this.tail_rows = metrics.counter('lumio_websocket_tail_rows_total', 'Outbox rows read by the tail');
  }

  publish(blocked: ReadonlySet<Backlogged>): void {
    let messages = 0;
    let bytes = 0;
    for (const { backlogged } of blocked) {
      messages += backlogged.messages;
      bytes += backlogged.bytes;
    }
    this.blocked.set(blocked.size);
    this.queued.set(messages);
    this.queued_bytes.set(bytes);
    if (this.sent > 0) this.sent_total.inc(this.sent);
    this.sent = 0;
  }
}
