import { createLocalRelay } from '../../engines/relay/local';
import { relayContract } from '../contracts/relay';

relayContract('local', async () => {
  const relay = createLocalRelay();
  return { a: relay, b: relay, close: () => relay.close() };
});
