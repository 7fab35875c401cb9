import { DELIVERED_ONCE } from '../../../domain/common/vendors';
import type { Logger } from '../../../engines/log/port';
import type { Metrics } from '../../../engines/metrics/port';
import type { Queryable } from '../../../engines/postgres/port';
import { runEvery } from '../../../lib/async/run-every';

/** Longest time without a process for webhooks that does not count as a gap: vendors' retries bridge it. */
export const MAX_PAUSE_MS = 60_000;
const EVERY_MS = 10_000;

export interface WebhookDoorDeps {
  db: Queryable;
  /** @throws while records cannot be stored */
  storable(): Promise<unknown>;
  log: Logger;
  metrics: Metrics;
  every_ms?: number;
}

export interface WebhookDoor {
  /** Notes that webhooks can be accepted now. Returns the gap that ends with this, to one process of all. */
  note(): Promise<{ from: string; to: string } | null>;
  close(): void;
}

/**
 * Notes every few seconds that webhooks can be stored, so that a time in which no process could is known afterwards: in
 * log, metric and the status of connections whose platform gives up soon ({@link DELIVERED_ONCE}).
 */
export function openWebhookDoor({ db, storable, log, metrics, every_ms = EVERY_MS }: WebhookDoorDeps): WebhookDoor {
  const gaps = metrics.counter(
    'lumio_webhook_gaps_total',
    'Times in which no process took webhooks in, for longer than the vendor tries',
    ['vendor'],
  );

  for (const vendor of DELIVERED_ONCE) gaps.inc(0, { vendor });

  async function note() {
    await storable();
    const [gap] = await db.query<{ from: string; to: string }>(NOTE, [MAX_PAUSE_MS / 1000], 'webhook-door');
    if (gap === undefined) return null;
    for (const vendor of DELIVERED_ONCE) gaps.inc(1, { vendor });
    log.warn({ ...gap, vendors: DELIVERED_ONCE }, 'webhooks were not taken in; deliveries of these vendors are lost');
    return gap;
  }

  const failed = (error: unknown) => log.debug({ err: error }, 'the open webhook door could not be noted');
  const work = async () => void (await note());
  void work().catch(failed);
  const stop = runEvery(every_ms, work, failed);
  return { note, close: stop };
}

/** Locks its row, so that one of several returning processes finds the gap. */
const NOTE = `
  with noted as (
    insert into webhook_door as d (open_at) values (clock_timestamp())
    on conflict (one) do update set
      gap_from = case when d.open_at < clock_timestamp() - make_interval(secs => $1) then d.open_at else d.gap_from end,
      gap_to = case when d.open_at < clock_timestamp() - make_interval(secs => $1) then excluded.open_at
        else d.gap_to end,
      open_at = greatest(d.open_at, excluded.open_at)
    returning gap_from, gap_to, open_at
  )
  select gap_from as "from", gap_to as "to" from noted where gap_to = open_at`;
