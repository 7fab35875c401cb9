import { createIntake, ID_SIGNED, type IntakeDeps, TAKEN_AT } from './intake';
import type { ParkedWebhooks } from './parked';
import { usualPath, vendors, type WebhookSettings } from './vendors';
import { toDelivery } from './webhook';

export type RetryResult =
  | { status: 'retried'; records: number }
  | { status: 'failed'; reason: string; detail: string }
  | { status: 'not_parked' };

/**
 * Normalises and stores a parked webhook once more, as it would have been at its first receipt; its signature was
 * verified then. A failure leaves it parked. Storing it twice (a crash before it is settled) has one effect.
 */
export async function retryParkedWebhook(
  id: string,
  deps: IntakeDeps & { settings: WebhookSettings; parked: ParkedWebhooks },
): Promise<RetryResult> {
  const letter = await deps.parked.get(id);
  if (letter === null || letter.status !== 'parked') return { status: 'not_parked' };
  const path = letter.headers[TAKEN_AT] ?? usualPath(letter);
  const vendor = vendors(deps.settings, null).find((candidate) => candidate.path === path);
  if (!vendor) return { status: 'failed', reason: letter.reason, detail: `no webhook of ${letter.vendor}` };
  const received_at = Date.parse(letter.first_received_at);
  const id_signed = letter.headers[ID_SIGNED] !== undefined;
  const intake = createIntake(deps);
  const delivery = toDelivery(letter.headers, letter.raw_body, received_at, { id_signed });
  const outcome = intake.normalise(vendor, delivery, { letter: id });
  const stored = outcome.kind === 'ok' ? await intake.store(outcome.records, received_at, letter.trace) : outcome;
  if (stored.kind === 'park' || stored.kind === 'refuse') {
    const [reason, detail] = stored.kind === 'park' ? [stored.reason, stored.detail] : ['refused', stored.message];
    await deps.parked.failed(id, reason, detail);
    return { status: 'failed', reason, detail };
  }
  await deps.parked.settle(id, 'retried');
  return { status: 'retried', records: stored.kind === 'stored' ? stored.records : 0 };
}
