/** The client of Lumio's WebSocket. See README.md. */
export * from './channels';
export { LumioClient } from './client';
export { isEvent, type EventOf } from './events';
export {
  Refused,
  type ClientOptions,
  type ClientState,
  type Every,
  type Problem,
  type SubscribeOptions,
  type Subscription,
  type Timing,
} from './options';
export type { OpenSocket, SocketLike } from './socket';
