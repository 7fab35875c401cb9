import { topicRelayContract } from '../../contracts/topic-relay';
import { type Kafka, startKafka } from '../support/kafka';
import { kafkaEngines } from '../support/kafka-engines';

describe('relays into Kafka', () => {
  let kafka: Kafka;
  beforeAll(async () => {
    kafka = await startKafka();
  });
  afterAll(() => kafka?.kill());

  topicRelayContract('kafka', (t) => kafkaEngines(kafka, t));
});
