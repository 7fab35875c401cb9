import type { LiveMessages } from '../../../app/services';
import { stringify } from '../../../lib/json/raw-json';
import { type TransientDeps, TransientSender } from './transient';

/** Messages that are pushed and kept nowhere, as operations send them. */
export function createLiveMessages(deps: TransientDeps): LiveMessages {
  const transient = new TransientSender(deps);
  return {
    async broadcast(channel, message) {
      await transient.publish(channel, stringify(message));
    },
  };
}
