import { topicRelayContract } from '../contracts/topic-relay';
import { engines } from '../support/projections';

topicRelayContract('embedded', (t) => engines(t.db));
