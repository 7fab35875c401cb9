import type { Logger } from '../engines/log/port';
import type { Metrics } from '../engines/metrics/port';
import { createRelayCodec } from '../engines/records/relayed';
import { deadLetterRelay } from '../projections/runtime/relay/dead-letter-relay';
import { domainEventRelay } from '../projections/runtime/relay/domain-event-relay';
import { createTopicRelays } from '../projections/runtime/relay/topic-relay';
import { UPCASTERS } from './areas';
import type { Engines } from '../engines/engines';

/** Starts the relays for external consumers, part of the role `projector`. Design §6, §7. */
export function startRelays(engines: Engines, log: Logger, metrics: Metrics): { stop(): Promise<void> } {
  const { projector_db: db, broker, stored_events, leases, wakeups } = engines;
  const codec = createRelayCodec(engines.schema_ids);
  return createTopicRelays({
    db,
    broker,
    leases,
    wakeups,
    log,
    metrics,
    sources: [
      domainEventRelay({ db, stored_events, upcasters: UPCASTERS, broker_id: broker.id, codec }),
      deadLetterRelay({ db, broker, upcasters: UPCASTERS, codec }),
    ],
  });
}
