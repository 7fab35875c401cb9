import { createKafkaBroker } from '../../../engines/broker/kafka/broker';
import { brokerContract } from '../../contracts/broker';
import { type Kafka, startKafka } from '../support/kafka';

brokerContract('kafka', async () => {
  const kafka: Kafka = await startKafka();
  return {
    open: () => createKafkaBroker({ url: kafka.url }),
    stop: () => kafka.kill(),
  };
});
