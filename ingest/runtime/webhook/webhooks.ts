import { ApiError } from '../../../kernel/errors';
import { EngineUnavailable, isPassing } from '../../../kernel/failures';
import { createBurstLog } from '../../../kernel/burst-log';
import type { Metrics } from '../../../engines/metrics/port';
import type { DeliveryVerification } from '../../../vendors/paypal/port';
import { YOUTUBE_CHALLENGE } from '../../youtube/webhook';
import { firstSubject } from '../parse/storage-limits';
import { createIntake, ID_SIGNED, type IntakeDeps, TAKEN_AT } from './intake';
import type { ParkedWebhookSink } from '../parked/parked';
import { createThrottledLog } from '../connection/throttled-log';
import { usualPath, vendors, type WebhookSettings } from './vendors';
import { headerOf, toDelivery } from './webhook';
import type { Verified, WebhookAnswer, WebhookRequest, WebhookRoute, WebhookVendor } from './webhook';

export interface WebhookDeps extends IntakeDeps {
  settings: WebhookSettings;
  /** Null when PayPal is not configured. */
  paypal: DeliveryVerification | null;
  parked: ParkedWebhookSink;
  metrics: Metrics;
  /** Unix milliseconds; for signature tolerances. Default: the clock. */
  now?: () => number;
}

/** Equal for every accepted delivery, so that it reveals nothing about this installation. */
const ACCEPTED: WebhookAnswer = { status: 200, body: '{"success":true}' };
/** Seconds after which a vendor should repeat a delivery that could not be stored. */
const RETRY_AFTER_SECONDS = 5;
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
/**
 * The inbound webhooks of YouTube, Kick, Trovo, Shopify, Stripe and PayPal (spec doc3 §4.2). Each delivery is verified
 * over its raw bytes, normalised, and answered 200 only after the record log (or the dead letters) has stored it
 * durably. Duplicates are accepted: the projector applies each effect once.
 * @throws Error that names the setting when a key is unreadable.
 */
export function webhookRoutes(deps: WebhookDeps): WebhookRoute[] {
  const receiver = createReceiver(deps);
  return [
    YOUTUBE_CHALLENGE,
    ...vendors(deps.settings, deps.paypal).map((vendor): WebhookRoute => ({
      method: 'POST',
      path: vendor.path,
      described: vendor.undescribed !== true,
      signatures: vendor.signatures,
      admitUnsigned: (request) => receiver.admitUnsigned(vendor, request),
      handle: (request) => receiver.receive(vendor, request),
    })),
  ];
}

function createReceiver(deps: WebhookDeps) {
  const { connections, parked, log, metrics, now = Date.now } = deps;
  const intake = createIntake(deps);
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
  const remark = createThrottledLog(log, now);
  const failed = createBurstLog(log, 'error', 'webhook delivery could not be stored');

  return { admitUnsigned, receive };

  async function admitUnsigned(vendor: WebhookVendor, request: WebhookRequest): Promise<void> {
    try {
      await verify(vendor, request);
    } catch (error) {
      if (error instanceof ApiError) answers.inc(1, { vendor: vendor.vendor, outcome: 'refused' });
      throw error;
    }
  }

  async function receive(vendor: WebhookVendor, request: WebhookRequest): Promise<WebhookAnswer> {
    const started = process.hrtime.bigint();
    let outcome = 'unavailable';
    try {
      outcome = await take(vendor, request);
      return ACCEPTED;
    } catch (error) {
      if (error instanceof ApiError) {
        if (error.status < 500) outcome = 'refused';
        throw error;
      }
      // Neither stored nor parked: the vendor keeps it and delivers again. An engine that is unavailable is counted by
      // the front door, which logs the cause of each 503.
      if (!isPassing(error))
        failed({ kind: vendor.vendor, facts: { vendor: vendor.vendor, err: error, ...request.log_facts } });
      const code = error instanceof EngineUnavailable ? 'INTERNAL_SERVER_ERROR' : 'DATABASE_ERROR';
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

  async function verify(vendor: WebhookVendor, request: WebhookRequest): Promise<Verified> {
    try {
      return await vendor.verify(request, connections, now());
    } catch (error) {
      if (error instanceof ApiError) {
        const { ip, log_facts } = request;
        remark('warn', { vendor: vendor.vendor, ip, reason: error.message, ...log_facts }, 'webhook refused');
      }
      throw error;
    }
  }

  /** Returns the outcome for the metric. */
  async function take(vendor: WebhookVendor, request: WebhookRequest): Promise<string> {
    const verified = await verify(vendor, request);
    const delivery = toDelivery(request.headers, request.raw_body, request.received_at, verified);
    const read = intake.normalise(vendor.vendor, () => vendor.normalise(delivery), request.log_facts);
    if (await intake.ofNobody(read)) return 'unknown_account';
    const outcome =
      read.kind === 'ok' ? await intake.store(read.records, request.received_at, request.trace ?? null) : read;
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
          subject: read.kind === 'ok' ? firstSubject(read.records) : null,
          trace,
          received_at,
        });
        remark('warn', { vendor: vendor.vendor, reason, ...request.log_facts }, 'webhook delivery parked');
        return 'parked';
      }
    }
  }
}

function keptHeaders(vendor: WebhookVendor, request: WebhookRequest): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of vendor.headers) {
    const value = headerOf(request.headers, name);
    if (value !== null) kept[name] = value;
  }
  if (vendor.path !== usualPath(vendor)) kept[TAKEN_AT] = vendor.path;
  return kept;
}
