import type { Settings } from '../../kernel/settings/settings';
import { LOGS_OF_RECORD } from '../../domain/common/records';
import type { OutsideEngines } from '../../engines/backup/log-restores';
import type { Logger } from '../../engines/log/port';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { openKafka } from '../../engines/broker/open';
import { openKurrent } from '../../engines/event-store/open';

/** Connects to the configured logs outside the database, before there is a database; to be closed. */
export async function openOutsideEngines(
  settings: Settings,
  log: Logger,
): Promise<OutsideEngines & { close(): Promise<void> }> {
  const events =
    settings.event_store.url === 'postgres' ? undefined : await openKurrent({ url: settings.event_store.url, log });
  try {
    const broker =
      settings.broker.url === 'postgres'
        ? undefined
        : await openKafka({ settings, serving: false, log, metrics: createPrometheusMetrics({}) });
    return {
      events,
      broker,
      topics: LOGS_OF_RECORD,
      partitions: settings.broker.partitions,
      async close() {
        await broker?.close();
        await events?.close();
      },
    };
  } catch (error) {
    await events?.close();
    throw error;
  }
}
