import { z } from 'zod';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { isPlanFlag, PLAN_FLAGS } from '../operators/feature-flags';
import { FREE_PLAN_ID, isLimitValue, isPlanLimit, PRO_PLAN_ID, SEEDED_LIMITS } from './plan-limits';
import { release, reserve, type ReservationCommand } from '../common/reservations';
import { unreachable } from '../common/unreachable';

/** Members of a plan that an operator may change: all but its slug. Source: spec doc2 §2.8, ruling c67. */
const offer = {
  name: z.string(),
  description: z.string().nullable(),
  price_monthly: z.int().describe('In the smallest unit of the currency'),
  price_yearly: z.int(),
  currency: z.string(),
  is_public: z.boolean(),
  sort_order: z.int(),
  limits: z.record(z.string(), z.int()).describe('A limit that is not named has its default'),
  stripe_product_id: z.string().nullable(),
  stripe_monthly_price_id: z.string().nullable(),
  stripe_yearly_price_id: z.string().nullable(),
};
export type Offer = { [Member in keyof typeof offer]: z.output<(typeof offer)[Member]> };

const plan_id = z.uuid();

/**
 * Offers to accounts: limits and features. The number of accounts on a plan is counted in its own stream, written
 * with the account's change of plan in one append, so that a plan in use is never deleted. The free plan is everybody's
 * who has no other: it counts nobody and is never deleted. Source: spec doc2 §2.8, §3, §4.3.
 */
export const PLAN_EVENTS = events({
  'plan:created': event({ plan_id, slug: z.string(), ...offer, created_at: instant() }),
  'plan:edited': event({ plan_id, ...offer, edited_at: instant() }),
  'plan:features_set': event(
    {
      plan_id,
      features: z.array(z.strictObject({ flag: z.string(), enabled: z.boolean() })).describe('Those that changed'),
      set_at: instant(),
    },
    { audit: { by: [] } },
  ),
  // Not audited: the account's own event is, in the same append.
  'plan:account_joined': event({ plan_id, joined_at: instant() }, { audit: null }),
  'plan:account_left': event({ plan_id, left_at: instant() }, { audit: null }),
  'plan:deleted': event({ plan_id, slug: z.string(), deleted_at: instant() }),
});
export type PlanEvent = EventOf<typeof PLAN_EVENTS>;

export type PlanCommand =
  | { type: 'plan:create'; plan_id: string; slug: string; offer: Offer; now: string }
  /** Creates it with features, unless it was there once. */
  | { type: 'plan:seed'; plan_id: string; slug: string; offer: Offer; features: readonly string[]; now: string }
  /** Unnamed members stay; a limit of null returns to its default. */
  | { type: 'plan:edit'; offer: PlanEdit; now: string }
  /** A flag that is not named stays as it is. */
  | { type: 'plan:set_features'; features: Readonly<Record<string, boolean>>; now: string }
  | { type: 'plan:join' | 'plan:leave' | 'plan:delete'; now: string };

export type PlanEdit = Partial<Omit<Offer, 'limits'>> & { limits?: Readonly<Record<string, number | null>> };

export interface Plan {
  status: 'none' | 'offered' | 'deleted';
  plan_id: string;
  slug: string;
  offer: Offer | null;
  features: ReadonlyMap<string, boolean>;
  /** Accounts on it; of the free plan always 0. */
  accounts: number;
}

const initialPlan: Plan = { status: 'none', plan_id: '', slug: '', offer: null, features: new Map(), accounts: 0 };
export const planStream = (plan_id: string): string => `plan-${plan_id}`;

export const PLAN_SLUG = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
export const PLAN_SLUG_LENGTH = { min: 2, max: 40 } as const;

/** Plans of a new installation, which always exist. */
export const SEEDED_PLANS = [
  { plan_id: FREE_PLAN_ID, slug: 'free', name: 'Free', features: [], sort_order: 0 },
  {
    plan_id: PRO_PLAN_ID,
    slug: 'pro',
    name: 'Pro',
    features: PLAN_FLAGS.map(({ key }) => key),
    sort_order: 1,
  },
] as const;

/** The command that makes a seeded plan. */
export const seedOf = (
  { plan_id, slug, name, features, sort_order }: (typeof SEEDED_PLANS)[number],
  now: string,
): PlanCommand => ({
  type: 'plan:seed',
  plan_id,
  slug,
  offer: {
    name,
    description: null,
    price_monthly: 0,
    price_yearly: 0,
    currency: 'USD',
    is_public: true,
    sort_order,
    limits: { ...SEEDED_LIMITS[slug] } as Record<string, number>,
    stripe_product_id: null,
    stripe_monthly_price_id: null,
    stripe_yearly_price_id: null,
  },
  features,
  now,
});

function decidePlan(state: Plan, command: PlanCommand): PlanEvent[] {
  const { now } = command;
  if (command.type === 'plan:create' || command.type === 'plan:seed') {
    const { plan_id, slug, offer } = command;
    if (state.status !== 'none') {
      if (command.type === 'plan:seed') return [];
      throw new DomainError('PLAN_EXISTS', { plan_id });
    }
    requireSlug(slug);
    requireOffer(offer);
    const created: PlanEvent = { type: 'plan:created', plan_id, slug, ...offer, created_at: now };
    if (command.type === 'plan:create' || command.features.length === 0) return [created];
    const features = command.features.map((flag) => ({ flag, enabled: true }));
    return [created, { type: 'plan:features_set', plan_id, features, set_at: now }];
  }
  const { plan_id, slug } = state;
  if (state.status !== 'offered') throw new DomainError('PLAN_NOT_FOUND');
  switch (command.type) {
    case 'plan:edit': {
      const offer = edited(state.offer!, command.offer);
      requireOffer(offer);
      if (same(state.offer, offer)) return [];
      return [{ type: 'plan:edited', plan_id, ...offer, edited_at: now }];
    }
    case 'plan:set_features': {
      const wanted = Object.entries(command.features);
      const unknown = wanted.find(([flag]) => !isPlanFlag(flag));
      if (unknown !== undefined) throw new DomainError('UNKNOWN_FLAG', { flag: unknown[0] });
      const features = wanted
        .filter(([flag, enabled]) => (state.features.get(flag) ?? false) !== enabled)
        .map(([flag, enabled]) => ({ flag, enabled }));
      return features.length === 0 ? [] : [{ type: 'plan:features_set', plan_id, features, set_at: now }];
    }
    case 'plan:join':
      return plan_id === FREE_PLAN_ID ? [] : [{ type: 'plan:account_joined', plan_id, joined_at: now }];
    case 'plan:leave':
      return plan_id === FREE_PLAN_ID ? [] : [{ type: 'plan:account_left', plan_id, left_at: now }];
    case 'plan:delete':
      if (plan_id === FREE_PLAN_ID) throw new DomainError('FREE_PLAN_STAYS');
      if (state.accounts > 0) throw new DomainError('PLAN_IN_USE', { accounts: state.accounts });
      return [{ type: 'plan:deleted', plan_id, slug, deleted_at: now }];
    default:
      return unreachable(command);
  }
}

function requireSlug(slug: string): void {
  const fits = slug.length >= PLAN_SLUG_LENGTH.min && slug.length <= PLAN_SLUG_LENGTH.max && PLAN_SLUG.test(slug);
  if (!fits) throw new DomainError('INVALID_SLUG');
}

function requireOffer({ name, price_monthly, price_yearly, limits }: Offer): void {
  if (name.trim() === '') throw new DomainError('NAME_REQUIRED');
  if (price_monthly < 0 || price_yearly < 0) throw new DomainError('NEGATIVE_PRICE');
  for (const [name, value] of Object.entries(limits)) {
    if (!isPlanLimit(name)) throw new DomainError('UNKNOWN_LIMIT', { name });
    if (!isLimitValue(value)) throw new DomainError('NEGATIVE_LIMIT');
  }
}

function edited(offer: Offer, { limits = {}, ...edit }: PlanEdit): Offer {
  const said = Object.entries({ ...offer.limits, ...limits }).filter((entry): entry is [string, number] => {
    return entry[1] !== null;
  });
  const named = Object.fromEntries(Object.entries(edit).filter(([, value]) => value !== undefined));
  return { ...offer, ...named, limits: Object.fromEntries(said) };
}

/** In whatever order the members stand. */
function same(one: Offer | null, other: Offer): boolean {
  const text = ({ limits, ...rest }: Offer) =>
    JSON.stringify([Object.entries(limits).sort(), Object.entries(rest).sort()]);
  return one !== null && text(one) === text(other);
}

function evolvePlan(state: Plan, event: PlanEvent): Plan {
  switch (event.type) {
    case 'plan:created': {
      const { type: _type, plan_id, slug, created_at: _at, ...offer } = event;
      return { ...state, status: 'offered', plan_id, slug, offer };
    }
    case 'plan:edited': {
      const { type: _type, plan_id: _id, edited_at: _at, ...offer } = event;
      return { ...state, offer };
    }
    case 'plan:features_set': {
      const features = new Map(state.features);
      for (const { flag, enabled } of event.features) features.set(flag, enabled);
      return { ...state, features };
    }
    case 'plan:account_joined':
      return { ...state, accounts: state.accounts + 1 };
    case 'plan:account_left':
      return { ...state, accounts: state.accounts - 1 };
    case 'plan:deleted':
      return { ...state, status: 'deleted' };
    default:
      return unreachable(event);
  }
}

export const plan: Decider<Plan, PlanCommand, PlanEvent> = {
  initial: initialPlan,
  decide: decidePlan,
  evolve: evolvePlan,
};

/** Kind of the reservation that makes a slug one plan's; its owner is the plan's id. */
export const PLAN_SLUGS = 'plan_slug';

/** Reservations of these events: a slug belongs to one plan. */
export const slugReservations = (events: readonly PlanEvent[]): ReservationCommand[] =>
  events.flatMap((event) => {
    if (event.type === 'plan:created') return [reserve(PLAN_SLUGS, event.slug, event.plan_id)];
    return event.type === 'plan:deleted' ? [release(PLAN_SLUGS, event.slug, event.plan_id)] : [];
  });
