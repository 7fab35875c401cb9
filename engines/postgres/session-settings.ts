/**
 * The server probes a connection after 10 s of silence and closes it 15 s later, because the machine at its other end
 * is lost.
 */
export const KEEPALIVE = '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3';

/**
 * For every pool: in addition, the server ends a transaction that waits 30 s for its next statement, and releases its
 * locks. A longer transaction sets its own bound (`set local idle_in_transaction_session_timeout`).
 */
export const BOUNDED = `${KEEPALIVE} -c idle_in_transaction_session_timeout=30000`;
