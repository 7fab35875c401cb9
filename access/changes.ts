import type { Relay } from '../engines/relay/port';
import type { Revocation, RevocationTail } from './revocations';

/** Where a command says that a credential, a membership or an account's features changed. */
export interface AccessChanges {
  /**
   * What this node remembers is gone when it returns; the others are told by the relay now, and by the durable tail in
   * any case.
   */
  announce(revocation: Partial<Revocation>): Promise<void>;
}

const TOPIC = 'access';

/**
 * Joins what forgets (resolver, feature flags, open sockets) with what tells: this node's commands, the relay and the
 * tail.
 */
export function createAccessChanges(deps: {
  relay: Relay;
  tail: RevocationTail;
  forget: readonly ((revocation: Partial<Revocation>) => void)[];
}): AccessChanges & { close(): void } {
  const forget = (revocation: Partial<Revocation>) => deps.forget.forEach((one) => one(revocation));
  const ends = [
    deps.tail.on(forget),
    deps.relay.subscribe(TOPIC, (message) => forget(JSON.parse(message) as Partial<Revocation>)),
  ];
  return {
    async announce(revocation) {
      forget(revocation);
      await deps.relay.publish(TOPIC, JSON.stringify(revocation));
    },
    close: () => ends.forEach((end) => end()),
  };
}
