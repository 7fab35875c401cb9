import { CONNECTIONS_BEHIND, createIntake, ID_SIGNED, type IntakeDeps, TAKEN_AT } from '../webhook/intake';
import { PARKED_ACCOUNT, PARKED_CHANNEL, PARKED_CONNECTION, type ParkedWebhook, type ParkedWebhooks } from './parked';
import { CONNECTION_NORMALISERS } from '../connection/normalisers';
import { usualPath, vendors, type WebhookSettings } from '../webhook/vendors';
import { type DraftRecord, externalId, type Outcome, toDelivery } from '../webhook/webhook';

export type RetryResult =
  | { status: 'retried'; records: number }
  | { status: 'failed'; reason: string; detail: string }
  | { status: 'not_parked' };

interface RetryDeps extends IntakeDeps {
  settings: WebhookSettings;
  parked: ParkedWebhooks;
}

type Letter = ParkedWebhook & { raw_body: Buffer };

/**
 * Normalises and stores a parked delivery once more, as at its first receipt by a webhook or a connection; a webhook's
 * signature was verified then. A failure leaves it parked. Storing it twice (a crash before it is settled) has one
 * effect.
 */
export async function retryParkedWebhook(id: string, deps: RetryDeps): Promise<RetryResult> {
  const letter = await deps.parked.get(id);
  if (letter === null || letter.status !== 'parked') return { status: 'not_parked' };
  const { raw_body } = letter;
  if (raw_body === null)
    return { status: 'failed', reason: letter.reason, detail: 'nobody can read its body any more' };
  const reading = readingOf({ ...letter, raw_body }, deps.settings);
  if (reading === null) return { status: 'failed', reason: letter.reason, detail: `no webhook of ${letter.vendor}` };
  const intake = createIntake(deps);
  const read = intake.normalise(letter.vendor, reading, { letter: id });
  const received_at = Date.parse(letter.first_received_at);
  const stored = read.kind === 'ok' ? await intake.store(identified(letter, read), received_at, letter.trace) : read;
  if (stored.kind === 'park' || stored.kind === 'refuse') {
    const [reason, detail] = stored.kind === 'park' ? [stored.reason, stored.detail] : ['refused', stored.message];
    await deps.parked.failed(id, reason, detail);
    return { status: 'failed', reason, detail };
  }
  // Its connection may be missing in the read model yet; only the operator drops a letter of this reason.
  if (stored.kind === 'skip' && letter.reason === CONNECTIONS_BEHIND) {
    await deps.parked.failed(id, letter.reason, `no connection yet: ${stored.detail ?? stored.reason}`);
    return { status: 'failed', reason: letter.reason, detail: stored.reason };
  }
  await deps.parked.settle(id, 'retried');
  return { status: 'retried', records: stored.kind === 'stored' ? stored.records : 0 };
}

/** Returns the reader of a letter; null without one. */
function readingOf({ vendor: slug, headers, raw_body, ...letter }: Letter, settings: WebhookSettings) {
  const received_at = Date.parse(letter.first_received_at);
  const connection_id = headers[PARKED_CONNECTION];
  if (connection_id !== undefined) {
    const normalise = CONNECTION_NORMALISERS[slug];
    const [account_id = null, channel_id = ''] = [headers[PARKED_ACCOUNT], headers[PARKED_CHANNEL]];
    const said = { text: raw_body.toString(), received_at };
    return normalise ? () => normalise(said, { connection_id, account_id, channel_id }) : null;
  }
  const path = headers[TAKEN_AT] ?? usualPath({ vendor: slug });
  const vendor = vendors(settings, null).find((candidate) => candidate.path === path);
  const id_signed = headers[ID_SIGNED] !== undefined;
  return vendor ? () => vendor.normalise(toDelivery(headers, raw_body, received_at, { id_signed })) : null;
}

/**
 * A record without an id of its own gets one from its letter, so that it counts once however often it is retried. A
 * letter without a subscription id counts for every account of its channel, because earlier releases kept none.
 */
function identified({ id, vendor }: ParkedWebhook, { records }: Outcome & { kind: 'ok' }) {
  return records.map((record, n) => ({
    ...record,
    owner: withoutMissingSubscription(record.owner),
    external_id: record.external_id ?? externalId(vendor, 'letter', id, String(n)),
  }));
}

function withoutMissingSubscription(owner: DraftRecord['owner']): DraftRecord['owner'] {
  if (owner.kind !== 'channel' || owner.subscription_id !== null) return owner;
  const { subscription_id: _, ...channel } = owner;
  return channel;
}
