import { v7 } from 'uuid';

/**
 * Id of an event that an account emits itself: a UUIDv7 whose version is 8, so that every reader of the log can tell it
 * from events of platforms, which history and public statistics count. One under an Idempotency-Key is a UUIDv5.
 */
export function emittedId(): string {
  const id = v7();
  return `${id.slice(0, 14)}8${id.slice(15)}`;
}

/** Whether an account emitted the event of this id itself. */
export const isEmittedId = (id: string): boolean => id[14] === '5' || id[14] === '8';
