import type { Relay } from '../../engines/relay/port';
import type { Revocation, RevocationTail } from './revocations';

/** Announces changes of credentials, memberships and an account's features. */
export interface AccessInvalidation {
  /**
   * Drops this node's cached state before it returns. Other nodes learn of the change from the relay, and in any case
   * from the durable tail.
   */
  announce(revocation: Partial<Revocation>): Promise<void>;
}

const TOPIC = 'access';

/**
 * Connects the caches to invalidate (resolver, feature flags, open sockets) with the sources of changes: this node's
 * commands, the relay and the tail.
 */
export function createAccessChanges(deps: {
  relay: Relay;
  tail: RevocationTail;
  forget: readonly ((revocation: Partial<Revocation>) => void)[];
}): AccessInvalidation & { close(): void } {
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
