import { DataError } from '../../kernel/projection';
import type { Json } from '../../lib/json/json';
import { parseInstant } from '../../lib/time/instants';

/** Kinds of objects that payment vendors tell of. */
export type PaymentKind =
  'checkout_session' | 'subscription' | 'invoice' | 'charge' | 'transfer' | 'account' | 'payout_item' | 'payout_batch';

/** Owner of payment objects: the installation, the accounts connected to it, or its payouts. */
export type PaymentSource = 'platform' | 'connect' | 'payouts';

/**
 * State of an object after one event, without anything personal. Of several events the one with the greatest `ended`,
 * then `happened_at`, then `rank` holds, whatever order they come in.
 */
export interface PaymentObject {
  source: PaymentSource;
  object_id: string;
  kind: PaymentKind;
  /** Of the connected account that it belongs to (`acct_…`); null for the installation's own. */
  connected_account: string | null;
  /** The customer (`cus_…`), or null. */
  customer: string | null;
  /** False for what the vendor's test mode made. */
  livemode: boolean;
  /** In the vendor's word. */
  status: string | null;
  /** Nothing that comes later opens it again: a subscription that was deleted, an invoice that was paid. */
  ended: boolean;
  /** When the event happened, by the vendor's own clock. RFC 3339. */
  happened_at: string;
  /** Order of two events of one second, the resolution of Stripe's times. */
  rank: number;
  /** Amounts in the vendor's form (Stripe: minor units; PayPal: decimal text), ids, dates in RFC 3339. */
  facts: Readonly<Record<string, Json>>;
}

/**
 * Object of an event; both shapes of Stripe's API are read (since 2025 the period of a subscription is
 * that of its items, and an invoice names its subscription below `parent`).
 * @param type of the record, like `stripe:connect.charge.refunded`
 * @throws DataError when the payload cannot be such an event
 */
export function readPayment(type: string, raw: string): PaymentObject {
  const event = new Members(parsed(raw));
  return type.startsWith('paypal:') ? readPayout(event) : readStripe(type.slice('stripe:'.length), event);
}

const CONNECT = 'connect.';

function readStripe(named: string, event: Members): PaymentObject {
  const connect = named.startsWith(CONNECT);
  const type = connect ? named.slice(CONNECT.length) : named;
  const object = event.at('data').at('object');
  const kind = STRIPE_KINDS[type.slice(0, type.lastIndexOf('.'))];
  if (kind === undefined) throw new DataError(`${type} is no event of payments`);
  const happened_at = instant(event.number('created'));
  if (happened_at === null) throw new DataError('created is missing');
  const status = object.text('status');
  return {
    source: connect ? 'connect' : 'platform',
    object_id: object.needed('id'),
    kind,
    connected_account: event.text('account') ?? (kind === 'account' ? object.text('id') : null),
    customer: object.id('customer'),
    livemode: (event.flag('livemode') ?? object.flag('livemode')) === true,
    status,
    ended: type === 'customer.subscription.deleted' || ENDED.has(`${kind}:${status}`),
    happened_at,
    rank: kind === 'charge' ? (object.number('amount_refunded') ?? 0) : type.endsWith('.created') ? 0 : 1,
    facts: STRIPE_FACTS[kind](object),
  };
}

const STRIPE_KINDS: Readonly<Record<string, StripeKind>> = {
  'checkout.session': 'checkout_session',
  'customer.subscription': 'subscription',
  invoice: 'invoice',
  charge: 'charge',
  transfer: 'transfer',
  account: 'account',
};
const ENDED: ReadonlySet<string> = new Set([
  'subscription:canceled',
  'subscription:incomplete_expired',
  'invoice:paid',
  'invoice:void',
]);
type StripeKind = Exclude<PaymentKind, 'payout_item' | 'payout_batch'>;

const STRIPE_FACTS: Readonly<Record<StripeKind, (object: Members) => Record<string, Json>>> = {
  checkout_session: (o) => ({
    ...o.texts('mode', 'payment_status', 'currency', 'client_reference_id'),
    ...o.numbers('amount_total'),
    ...o.ids('subscription', 'payment_intent'),
    metadata: o.metadata(),
  }),
  subscription: (o) => ({
    cancel_at_period_end: o.flag('cancel_at_period_end'),
    current_period_end: instant(latest([o.number('current_period_end'), ...o.each('items', 'current_period_end')])),
    cancel_at: instant(o.number('cancel_at')),
    ended_at: instant(o.number('ended_at')),
    price_ids: o.list('items').flatMap((item) => item.id('price') ?? item.id('plan') ?? []),
    metadata: o.metadata(),
  }),
  invoice: (o) => ({
    subscription: o.id('subscription') ?? o.at('parent').at('subscription_details').id('subscription'),
    next_payment_attempt: instant(o.number('next_payment_attempt')),
    ...o.texts('currency', 'billing_reason'),
    ...o.numbers('amount_due', 'amount_paid', 'attempt_count'),
  }),
  charge: (o) => ({
    ...o.numbers('amount', 'amount_refunded'),
    ...o.texts('currency'),
    ...o.ids('payment_intent', 'transfer'),
    refunded: o.flag('refunded'),
  }),
  transfer: (o) => ({
    ...o.numbers('amount', 'amount_reversed'),
    ...o.texts('currency', 'transfer_group'),
    ...o.ids('destination'),
  }),
  account: (o) => ({
    charges_enabled: o.flag('charges_enabled'),
    payouts_enabled: o.flag('payouts_enabled'),
    details_submitted: o.flag('details_submitted'),
    disabled_reason: o.at('requirements').text('disabled_reason'),
    ...o.texts('country', 'default_currency'),
  }),
};

/** Final states of an item or a batch at PayPal; all others may still change. */
const PAYOUT_ENDED: ReadonlySet<string | null> = new Set(['SUCCESS', 'FAILED', 'RETURNED', 'REFUNDED', 'REVERSED']);

function readPayout(event: Members): PaymentObject {
  const resource = event.at('resource');
  const header = resource.at('batch_header');
  const happened_at = parseInstant(event.needed('create_time'));
  if (happened_at === null) throw new DataError('create_time is no time');
  const item_id = resource.text('payout_item_id');
  const status = item_id === null ? header.text('batch_status') : resource.text('transaction_status');
  return {
    source: 'payouts',
    object_id: item_id ?? header.needed('payout_batch_id'),
    kind: item_id === null ? 'payout_batch' : 'payout_item',
    connected_account: null,
    customer: null,
    livemode: true,
    status,
    ended: PAYOUT_ENDED.has(status),
    happened_at,
    rank: 0,
    facts:
      item_id === null
        ? {
            sender_batch_id: header.at('sender_batch_header').text('sender_batch_id'),
            amount: header.money('amount'),
            fee: header.money('fees'),
          }
        : {
            sender_item_id: resource.at('payout_item').text('sender_item_id'),
            amount: resource.at('payout_item').money('amount'),
            fee: resource.money('payout_item_fee'),
            ...resource.texts('payout_batch_id', 'sender_batch_id', 'transaction_id'),
          },
  };
}

function parsed(raw: string): unknown {
  try {
    return JSON.parse(raw);
  } catch (error) {
    throw new DataError(`no JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Unix seconds as RFC 3339; null for what is none. */
function instant(seconds: number | null): string | null {
  if (seconds === null || !(Math.abs(seconds) < 1e11)) return null;
  return new Date(seconds * 1000).toISOString();
}

const latest = (times: readonly (number | null)[]): number | null =>
  times.reduce((found, time) => (found === null || (time !== null && time > found) ? time : found), null);

/** Longest text kept of one member. */
const MAX_TEXT = 500;

/** The members of a value that may be missing or of another type. */
class Members {
  constructor(private readonly value: unknown) {}

  private get(name: string): unknown {
    const { value } = this;
    if (value === null || typeof value !== 'object' || Array.isArray(value) || !Object.hasOwn(value, name)) return null;
    return (value as Record<string, unknown>)[name];
  }

  at(name: string): Members {
    return new Members(this.get(name));
  }

  text(name: string): string | null {
    const value = this.get(name);
    // The cut may split a surrogate pair.
    return typeof value === 'string' ? value.replaceAll('\0', '\ufffd').slice(0, MAX_TEXT).toWellFormed() : null;
  }

  /** @throws DataError when it is missing */
  needed(name: string): string {
    const text = this.text(name);
    if (text === null || text === '') throw new DataError(`${name} is missing`);
    return text;
  }

  number(name: string): number | null {
    const value = this.get(name);
    return Number.isSafeInteger(value) ? (value as number) : null;
  }

  flag(name: string): boolean | null {
    const value = this.get(name);
    return typeof value === 'boolean' ? value : null;
  }

  /** A reference: an id, or the object itself where the sender has expanded it. */
  id(name: string): string | null {
    return this.text(name) ?? this.at(name).text('id');
  }

  /** The objects of a list. */
  list(name: string): Members[] {
    const data = this.at(name).get('data');
    return Array.isArray(data) ? data.map((one) => new Members(one)) : [];
  }

  each(name: string, member: string): (number | null)[] {
    return this.list(name).map((one) => one.number(member));
  }

  texts(...names: readonly string[]): Record<string, Json> {
    return Object.fromEntries(names.map((name) => [name, this.text(name)]));
  }

  numbers(...names: readonly string[]): Record<string, Json> {
    return Object.fromEntries(names.map((name) => [name, this.number(name)]));
  }

  ids(...names: readonly string[]): Record<string, Json> {
    return Object.fromEntries(names.map((name) => [name, this.id(name)]));
  }

  /** Metadata that Lumio attached when it created the object. */
  metadata(): Record<string, Json> {
    const value = this.get('metadata');
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return {};
    const metadata = this.at('metadata');
    return metadata.texts(...Object.keys(value).slice(0, 50));
  }

  /** A decimal amount stays text. */
  money(name: string): Json {
    const { value, currency } = this.at(name).texts('value', 'currency');
    return value === null && currency === null ? null : { value: value ?? null, currency: currency ?? null };
  }
}
