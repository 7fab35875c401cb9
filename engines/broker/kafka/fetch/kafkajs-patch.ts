import RequestQueue from 'kafkajs/src/network/requestQueue';

/**
 * After the first answer on a connection, kafkajs 2.2.4 checks for waiting requests every millisecond, for ever
 * (tulios/kafkajs#1704), with a negative delay, of which Node 24 warns (#1751). This check runs only while requests
 * wait: a request that has to wait starts it.
 */
const look = RequestQueue.prototype.scheduleCheckPendingRequests;
RequestQueue.prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
  if (this.pending.length > 0) look.call(this);
};
