import { archiveContract } from '../../contracts/archive';
import { type Kafka, startKafka } from '../support/kafka';
import { kafkaEngines } from '../support/kafka-engines';

describe('the archive of Kafka', () => {
  let kafka: Kafka;
  beforeAll(async () => {
    kafka = await startKafka();
  });
  afterAll(() => kafka?.kill());

  archiveContract('kafka', (t) => kafkaEngines(kafka, t));
});
