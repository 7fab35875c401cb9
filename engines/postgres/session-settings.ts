/**
 * The server asks after a silent link 10 s after its last word, and gives it up 15 s later: the machine at its end is
 * gone.
 */
export const KEEPALIVE = '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3';

/**
 * For every pool: besides, the server ends a transaction that waits for 30 s for its next statement, and gives its
 * locks back. Whoever needs longer says so in the transaction itself (`set local idle_in_transaction_session_timeout`).
 */
export const BOUNDED = `${KEEPALIVE} -c idle_in_transaction_session_timeout=30000`;
