import { v7 as uuidv7 } from 'uuid';
import type { ConnectionLookup } from '../../access/connections';
import type { Settings } from '../../kernel/settings';
import { ApiError } from '../../kernel/errors';
import type { RecordEnvelope, Topic } from '../../domain/records';
import { EngineAway } from '../../kernel/failures';
import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import type { RecordLog } from '../../engines/records/port';
import { createKickWebhook } from '../kick';
import type { DeadLetters, DeadLetterSink } from './parked';
import { createShopifyWebhook } from '../shopify';
import { MAX_STORED_BYTES } from './text';
import { createTrovoWebhook } from '../trovo';
import { headerOf, park, toDelivery } from './webhook';
import type {
  DraftRecord,
  Outcome,
  Verified,
  WebhookAnswer,
  WebhookRequest,
  WebhookRoute,
  WebhookVendor,
} from './webhook';
import { createYoutubeWebhook, YOUTUBE_CHALLENGE } from '../youtube';

export interface WebhookDeps {
  settings: Settings['webhooks'];
  connections: ConnectionLookup;
  records: RecordLog;
  parked: DeadLetterSink;
  log: Logger;
  metrics: Metrics;
  /** Unix milliseconds; for signature tolerances. Default: the clock. */
  now?: () => number;
}

/** The same for every delivery that was taken in, so that it tells nothing about what is here. */
const ACCEPTED: WebhookAnswer = { status: 200, body: '{"success":true}' };
/** Seconds after which a vendor is asked to deliver again what could not be stored. */
const RETRY_AFTER_SECONDS = 5;
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
/**
 * Repeated in this many milliseconds, the same kind of remark is logged once: an attacker or a noisy vendor must not
 * fill the disk.
 */
const REMARK_EVERY_MS = 10_000;

/**
 * The inbound webhooks of YouTube, Kick, Trovo and Shopify (spec doc3 §4.2). Each delivery is verified over its raw
 * bytes, normalised, and answered 200 only after the record log (or the dead letters) has it durably. Duplicates are
 * accepted: the projector makes each effect once.
 * @throws Error that names the setting when a key is unreadable.
 */
export function webhookRoutes(deps: WebhookDeps): WebhookRoute[] {
  const ingest = createIngest(deps);
  return [
    YOUTUBE_CHALLENGE,
    ...vendors(deps.settings).map((vendor): WebhookRoute => ({
      method: 'POST',
      path: vendor.path,
      handle: (request) => ingest.receive(vendor, request),
    })),
  ];
}

export type RetryResult =
  | { status: 'retried'; records: number }
  | { status: 'failed'; reason: string; detail: string }
  | { status: 'not_parked' };

/**
 * Normalises and stores a dead letter once more, as it would have been at its first receipt; its signature was verified
 * then. A failure leaves it parked. Storing it twice (a crash before it is settled) has one effect.
 */
export async function retryDeadLetter(id: string, deps: WebhookDeps & { parked: DeadLetters }): Promise<RetryResult> {
  const letter = await deps.parked.get(id);
  if (letter === null || letter.status !== 'parked') return { status: 'not_parked' };
  const vendor = vendors(deps.settings).find((candidate) => candidate.vendor === letter.vendor);
  if (!vendor) return { status: 'failed', reason: letter.reason, detail: `no webhook of ${letter.vendor}` };
  const received_at = Date.parse(letter.first_received_at);
  const id_signed = letter.headers[ID_SIGNED] !== undefined;
  const ingest = createIngest(deps);
  const delivery = toDelivery(letter.headers, letter.raw_body, received_at, { id_signed });
  const outcome = ingest.normalise(vendor, delivery, { letter: id });
  const stored = outcome.kind === 'ok' ? await ingest.store(outcome.records, received_at, letter.trace) : outcome;
  if (stored.kind === 'park' || stored.kind === 'refuse') {
    const [reason, detail] = stored.kind === 'park' ? [stored.reason, stored.detail] : ['refused', stored.message];
    await deps.parked.failed(id, reason, detail);
    return { status: 'failed', reason, detail };
  }
  await deps.parked.settle(id, 'retried');
  return { status: 'retried', records: stored.kind === 'stored' ? stored.records : 0 };
}

const vendors = (settings: Settings['webhooks']): WebhookVendor[] => [
  createYoutubeWebhook(settings),
  createKickWebhook(settings),
  createTrovoWebhook(settings),
  createShopifyWebhook(settings),
];

type Stored =
  | { kind: 'stored'; records: number }
  | { kind: 'skip'; reason: string; detail?: string }
  | (Outcome & { kind: 'park' });

function createIngest({ connections, records: recordLog, parked, log, metrics, now = Date.now }: WebhookDeps) {
  const answers = metrics.counter('lumio_webhooks_total', 'Webhook deliveries by how they ended', [
    'vendor',
    'outcome',
  ]);
  const seconds = metrics.histogram(
    'lumio_webhook_duration_seconds',
    'From receipt to answer of a webhook delivery',
    SECONDS,
    ['vendor'],
  );
  const remark = createRemarks(log, now);

  return { receive, normalise, store };

  async function receive(vendor: WebhookVendor, request: WebhookRequest): Promise<WebhookAnswer> {
    const started = process.hrtime.bigint();
    let outcome = 'unavailable';
    try {
      outcome = await settle(vendor, request);
      return ACCEPTED;
    } catch (error) {
      if (error instanceof ApiError) {
        if (error.status < 500) outcome = 'refused';
        throw error;
      }
      // neither stored nor parked: the vendor keeps it and delivers again
      log.error({ vendor: vendor.vendor, err: error, ...request.log_facts }, 'webhook delivery could not be stored');
      const code = error instanceof EngineAway ? 'INTERNAL_SERVER_ERROR' : 'DATABASE_ERROR';
      throw new ApiError(code, 'webhook delivery could not be stored', {
        status: 503,
        retry_after_seconds: RETRY_AFTER_SECONDS,
        cause: error,
      });
    } finally {
      answers.inc(1, { vendor: vendor.vendor, outcome });
      seconds.observe(Number(process.hrtime.bigint() - started) / 1e9, { vendor: vendor.vendor });
    }
  }

  /** Returns how it ended, for the metric. */
  async function settle(vendor: WebhookVendor, request: WebhookRequest): Promise<string> {
    let verified: Verified;
    try {
      verified = await vendor.verify(request, connections, now());
    } catch (error) {
      if (error instanceof ApiError) {
        const { ip, log_facts } = request;
        remark('warn', { vendor: vendor.vendor, ip, reason: error.message, ...log_facts }, 'webhook refused');
      }
      throw error;
    }
    const delivery = toDelivery(request.headers, request.raw_body, request.received_at, verified);
    const read = normalise(vendor, delivery, request.log_facts);
    const outcome = read.kind === 'ok' ? await store(read.records, request.received_at, request.trace ?? null) : read;
    switch (outcome.kind) {
      case 'stored':
        return 'stored';
      case 'skip':
        remark(
          'info',
          { vendor: vendor.vendor, reason: outcome.reason, detail: outcome.detail, ...request.log_facts },
          'webhook not kept',
        );
        return outcome.reason;
      case 'refuse':
        throw new ApiError('BAD_REQUEST', outcome.message);
      case 'park': {
        const { reason, detail } = outcome;
        const { raw_body, received_at, trace = null } = request;
        const headers = { ...keptHeaders(vendor, request), ...(verified.id_signed && { [ID_SIGNED]: 'yes' }) };
        await parked.park({
          vendor: vendor.vendor,
          reason,
          detail,
          headers,
          raw_body,
          trace,
          received_at,
        });
        remark('warn', { vendor: vendor.vendor, reason, ...request.log_facts }, 'webhook delivery parked');
        return 'parked';
      }
    }
  }

  /** A normaliser that throws met a payload that nobody foresaw: that is a dead letter, not an outage. */
  function normalise(vendor: WebhookVendor, delivery: ReturnType<typeof toDelivery>, log_facts: object = {}): Outcome {
    try {
      return vendor.normalise(delivery);
    } catch (error) {
      log.error({ vendor: vendor.vendor, err: error, ...log_facts }, 'webhook normaliser failed');
      return park('normaliser_failed', error instanceof Error ? error.message : 'unknown error');
    }
  }

  /**
   * Appends one record for each account that the drafts belong to. @throws what the lookup or the log threw, unless the
   * payload itself earned it
   */
  async function store(drafts: readonly DraftRecord[], received_at: number, trace: string | null): Promise<Stored> {
    const large = drafts.find((draft) => Buffer.byteLength(draft.raw) > MAX_STORED_BYTES);
    if (large) return { kind: 'park', reason: 'too_large', detail: `more than ${MAX_STORED_BYTES} bytes` };
    const topics = new Map<Topic, RecordEnvelope[]>();
    for (const { owner, topic, ...draft } of drafts) {
      for (const account_id of await accountsOf(owner)) {
        const envelope = {
          id: uuidv7(),
          account_id,
          received_at: new Date(received_at).toISOString(),
          trace,
          ...draft,
        };
        topics.set(topic, [...(topics.get(topic) ?? []), envelope]);
      }
    }
    if (topics.size === 0) {
      const owner = drafts[0]!.owner;
      return {
        kind: 'skip',
        reason: 'unknown_account',
        detail: owner.kind === 'shop' ? owner.shop_domain : owner.channel_id,
      };
    }
    let count = 0;
    for (const [topic, envelopes] of topics) {
      try {
        await recordLog.append(topic, envelopes);
      } catch (error) {
        if (!isUnstorable(error)) throw error;
        return { kind: 'park', reason: 'not_storable', detail: (error as Error).message };
      }
      count += envelopes.length;
    }
    return { kind: 'stored', records: count };
  }

  async function accountsOf(owner: DraftRecord['owner']): Promise<string[]> {
    if (owner.kind === 'channel') {
      const accounts = await connections.byChannel(owner.platform, owner.channel_id);
      return accounts.map((account) => account.account_id);
    }
    const account = await connections.byShopDomain(owner.shop_domain);
    return account === null ? [] : [account.account_id];
  }
}

/** PostgreSQL's data exceptions and program limits: the same record would fail for ever. Anything else may pass. */
function isUnstorable(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^(?:22|54)[0-9A-Z]{3}$/.test(code);
}

/**
 * Kept beside a parked delivery's headers, since its signature is not: what {@link Verified} said. No sender's header
 * of this name is kept.
 */
const ID_SIGNED = 'lumio-id-signed';

function keptHeaders(vendor: WebhookVendor, request: WebhookRequest): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of vendor.headers) {
    const value = headerOf(request.headers, name);
    if (value !== null) kept[name] = value;
  }
  return kept;
}

/**
 * Logs the first of each kind (message, vendor and reason), and then one in {@link REMARK_EVERY_MS} with the number
 * left out.
 */
function createRemarks(log: Logger, now: () => number) {
  const kinds = new Map<string, { until: number; left_out: number }>();
  return (
    level: 'info' | 'warn',
    facts: { vendor: string; reason: string; [fact: string]: unknown },
    message: string,
  ): void => {
    const kind = `${message} ${facts.vendor} ${facts.reason}`;
    const last = kinds.get(kind);
    const at = now();
    if (last && at < last.until) {
      last.left_out += 1;
      return;
    }
    kinds.set(kind, { until: at + REMARK_EVERY_MS, left_out: 0 });
    log[level]({ ...facts, ...(last?.left_out ? { left_out: last.left_out } : {}) }, message);
  };
}
