import { createHash, randomBytes } from 'node:crypto';
import { actAsService } from '../../../app/service-calls';
import { automation, automationStream } from '../../../domain/automation/automations';
import { WEBHOOK_FAILURES } from '../../../domain/automation/webhooks';
import { webhookHeaders, webhookSecret } from '../../../lib/hash/webhook-signatures';
import type { EventStore } from '../../../engines/event-store/port';
import type { Queryable } from '../../../engines/postgres/port';
import { DomainError } from '../../../kernel/errors';
import { NotSent, OutcomeUnknown } from '../../../kernel/job';
import type { SecretBox } from '../../../privacy/secrets/port';
import type { HttpClients } from '../../../vendors/http/port';

interface Sealing {
  db: Pick<Queryable, 'query'>;
  secrets: SecretBox;
}
interface WebhookOf {
  automation_id: string;
  account_id: string;
}

/** Encryption context of the secrets of an automation. */
export const webhookSecretContext = (automation_id: string): string => `automation-webhook ${automation_id}`;
const SECRET_BYTES = 32;
/** Secrets that sign at once: a header bears no more signatures than receivers accept. */
const MAX_SIGNING = 10;

/** A new secret, and the hash by which its event names it. */
export function newWebhookSecret(): { secret: string; secret_hash: string } {
  const secret = webhookSecret(randomBytes(SECRET_BYTES));
  return { secret, secret_hash: createHash('sha256').update(secret).digest('base64url') };
}

/** Stores a secret that waits for its event; drops those whose event never came, and those that sign no more. */
export async function keepWebhookSecret(
  { db, secrets }: Sealing,
  { automation_id, account_id }: WebhookOf,
  { secret, secret_hash }: { secret: string; secret_hash: string },
): Promise<void> {
  await db.query(
    `with gone as (
       delete from automation_webhook_secrets where automation_id = $1 and (ends_at < clock_timestamp()
         or active_since is null and created_at < clock_timestamp() - interval '1 day')
     )
     insert into automation_webhook_secrets (automation_id, secret_hash, account_id, sealed) values ($1, $2, $3, $4)
     on conflict do nothing`,
    [automation_id, secret_hash, account_id, secrets.seal(secret, webhookSecretContext(automation_id))],
    'automation-webhook-secret-keep',
  );
}

/** Secrets that sign now, the newest first; the first call makes one. */
async function signingSecrets({ db, secrets }: Sealing, of: WebhookOf): Promise<string[]> {
  const { automation_id, account_id } = of;
  const read = async () =>
    (
      await db.query<{ sealed: string }>(
        `select sealed from automation_webhook_secrets where automation_id = $1 and active_since is not null
           and (ends_at is null or ends_at > clock_timestamp()) order by active_since desc
         limit ${MAX_SIGNING}`,
        [automation_id],
        'automation-webhook-secrets',
      )
    ).map(({ sealed }) => secrets.open(sealed, webhookSecretContext(automation_id)).toString());
  const found = await read();
  if (found.length > 0) return found;
  const { secret, secret_hash } = newWebhookSecret();
  await db.query(
    `insert into automation_webhook_secrets (automation_id, secret_hash, account_id, sealed, active_since)
     values ($1, $2, $3, $4, clock_timestamp()) on conflict do nothing`,
    [automation_id, secret_hash, account_id, secrets.seal(secret, webhookSecretContext(automation_id))],
    'automation-webhook-secret-first',
  );
  return read();
}

export interface Webhook extends WebhookOf {
  /** Equal over all tries. */
  id: string;
  /** With its values filled in. */
  url: string;
  /** JSON text. */
  body: string;
  signal?: AbortSignal;
}

export type WebhookOutcome = { status: 'sent' } | { status: 'failed' | 'unknown'; error: string };

/** Sends webhooks of automations, in a process that runs jobs. */
export interface WebhookCalls {
  send(webhook: Webhook): Promise<WebhookOutcome>;
}

/** Automations that one pass disables. */
const BATCH = 500;
const DEADLINE_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024;

/** Redirects are failures. A call without an answer is not repeated. */
export function createWebhookCalls({ db, secrets, http }: Sealing & { http: HttpClients }): WebhookCalls {
  // The client has a circuit for each host, and one name in metrics for all.
  const client = http.client('automation-webhooks', ['*']);
  return {
    async send({ automation_id, account_id, id, url, body, signal }) {
      const signing = await signingSecrets({ db, secrets }, { automation_id, account_id });
      const timestamp = Math.floor(Date.now() / 1000);
      try {
        const { status } = await client.call({
          ...{ method: 'POST', url, body, headers: webhookHeaders({ id, timestamp, body }, signing) },
          ...{ deadline_ms: DEADLINE_MS, max_bytes: MAX_ANSWER_BYTES, repeatable: false, signal },
        });
        if (status >= 200 && status < 300) return { status: 'sent' };
        return { status: 'failed', error: status >= 300 && status < 400 ? 'redirected' : `status_${status}` };
      } catch (error) {
        if (error instanceof OutcomeUnknown) return { status: 'unknown', error: 'no_answer' };
        if (error instanceof NotSent) return { status: 'failed', error: 'not_sent' };
        throw error;
      }
    },
  };
}

/** Stores the outcome of a webhook, in the effect of its step. */
export async function noteWebhook(
  tx: Queryable,
  { automation_id, account_id }: WebhookOf,
  has_succeeded: boolean,
): Promise<void> {
  if (has_succeeded) {
    await tx.query(DROP_WEBHOOK_FAILURES, [automation_id], 'automation-webhook-success');
    return;
  }
  await tx.query(
    `insert into automation_webhook_failures as f (automation_id, account_id, failing_since, last_failed_at)
     select $1, $2, clock_timestamp(), clock_timestamp()
     where not exists (select from dissolved_accounts where account_id = $2)
     on conflict (automation_id) do update set last_failed_at = excluded.last_failed_at`,
    [automation_id, account_id],
    'automation-webhook-failure',
  );
}

export const DROP_WEBHOOK_FAILURES = 'delete from automation_webhook_failures where automation_id = $1';
export const DROP_WEBHOOK_SECRETS = 'delete from automation_webhook_secrets where automation_id = $1';
export const DROP_WEBHOOKS_OF_ACCOUNT = [
  'delete from automation_webhook_failures where account_id = $1',
  'delete from automation_webhook_secrets where account_id = $1',
];

/** Disables automations whose webhooks failed for a day without a success. Returns their number. */
export async function disableFailing({ db, events }: { db: Queryable; events: EventStore }): Promise<number> {
  const rows = await db.query<{ automation_id: string }>(
    `select automation_id from automation_webhook_failures
     where last_failed_at >= failing_since + interval '1 day' order by failing_since limit ${BATCH}`,
    [],
    'automation-webhooks-failing',
  );
  const disable = { type: 'automation:disable', reason: WEBHOOK_FAILURES } as const;
  for (const { automation_id } of rows) {
    try {
      await actAsService('automation-webhooks', events)(automation, automationStream(automation_id), disable);
    } catch (error) {
      // It was deleted meanwhile.
      if (!(error instanceof DomainError)) throw error;
    }
    await db.query(DROP_WEBHOOK_FAILURES, [automation_id], 'automation-webhook-disabled');
  }
  return rows.length;
}
