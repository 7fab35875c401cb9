import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { event, events, instant, type EventOf } from '../../kernel/event';
import { isPublicHost } from '../../lib/net/public-addresses';

/** Hours for which a replaced secret still signs. */
export const SECRET_OVERLAP_HOURS = 24;
/** Reason of an automation that was disabled because of its webhooks. */
export const WEBHOOK_FAILURES = 'webhook_failures';

const ids = { automation_id: z.uuid(), account_id: z.uuid() };
export const AUTOMATION_WEBHOOK_EVENTS = events({
  'automation_webhook:secret_rotated': event(
    { ...ids, secret_hash: z.string(), rotated_at: instant() },
    { audit: { target: ['automation', 'automation_id'], omit: ['secret_hash'] } },
  ),
});
export type AutomationWebhookEvent = EventOf<typeof AUTOMATION_WEBHOOK_EVENTS>;
interface RotateSecret {
  type: 'automation_webhook:rotate_secret';
  automation_id: string;
  account_id: string;
  secret_hash: string;
  now: string;
}
export const automationWebhookStream = (automation_id: string): string => `automation-webhook-${automation_id}`;
export const automationWebhook: Decider<null, RotateSecret, AutomationWebhookEvent> = {
  initial: null,
  decide: (_state, { type: _type, now, ...rotated }) => [
    { type: 'automation_webhook:secret_rotated', ...rotated, rotated_at: now },
  ],
  evolve: () => null,
};

/** Problem of an address of a webhook; null of a valid one. Path and query may have variables. */
export function webhookUrlProblem(address: string, allow_loopback: boolean): string | null {
  const [, authority] = /^https?:\/\/([^/?#\\]+)/i.exec(address) ?? [];
  if (authority === undefined || !URL.canParse(address)) return 'must be an address of https';
  const url = new URL(address);
  // A parser drops tabs and skips slashes before a host.
  if (/[{}%]/.test(authority) || /[{}]/.test(url.hostname)) return 'the host must have no variables';
  if (url.username !== '' || url.password !== '' || authority.includes('@')) return 'must have no user information';
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  const is_own = !isPublicHost(host);
  if (is_own && isPublicHost(host, allow_loopback)) return null;
  if (url.protocol !== 'https:') return 'must be an address of https';
  if (url.port !== '') return 'the port must be 443';
  return is_own ? 'the host must be public' : null;
}

/** Number of the segments `.` and `..` of a path; a parser of addresses drops tabs and line breaks. */
const dotSegments = (address: string): number =>
  address
    .replace(/[\t\n\r]/g, '')
    .replace(/[?#][^]*$/, '')
    .split(/[/\\]/)
    .filter((segment) => /^(\.|%2e){1,2}$/i.test(segment)).length;

/** Whether values that were filled into an address lead to another path than its template. */
export const leadsElsewhere = (template: string, address: string): boolean =>
  dotSegments(address) > dotSegments(template);

/** Whether a body is JSON with its variables inside strings. */
export function isJsonTemplate(body: string): boolean {
  try {
    JSON.parse(body);
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
