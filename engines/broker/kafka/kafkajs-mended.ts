import RequestQueue from 'kafkajs/src/network/requestQueue';

/**
 * kafkajs 2.2.4 looks after every answer whether requests wait, and from then on every millisecond, for ever, on each
 * connection (tulios/kafkajs#1704); the delay that it asks for is negative, which Node 24 warns of (#1751). It need
 * look only while some do wait: a request that has to is what begins the looking.
 */
const look = RequestQueue.prototype.scheduleCheckPendingRequests;
RequestQueue.prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
  if (this.pending.length > 0) look.call(this);
};
