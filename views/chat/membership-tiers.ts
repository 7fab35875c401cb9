import { z } from 'zod';
import type { Queryable } from '../../engines/postgres/port';

const UNITS = ['MONTH', 'MONTHS', 'YEAR', 'YEARS'] as const;

/** A level of a YouTube channel's memberships. Source: spec doc2 §2.10. */
export const MembershipTier = z
  .object({
    tooltip: z.string().describe('The name of the level: YouTube publishes no tooltips'),
    tier_name: z.string(),
    badge_url: z.string().nullable().describe('Null: YouTube publishes no badges'),
    duration_value: z.int().min(1).nullable().describe('`member_months_min` in months or years'),
    duration_unit: z.enum(UNITS).meta({ id: 'MembershipDurationUnit' }).nullable(),
    member_months_min: z.int().min(1).nullable().describe('Fewest months that a milestone of the level names'),
    sort_order: z.int().min(0).describe('By first sight'),
    first_seen_at: z.iso.datetime(),
    last_seen_at: z.iso.datetime(),
  })
  .meta({ id: 'GqlYoutubeMembershipTier' });
export type MembershipTier = z.output<typeof MembershipTier>;

/** Newest member events that are read for the tiers. */
const NEWEST = 10_000;
/** Longest name of a level in characters, and most tiers: events may be emitted with any. */
const NAME = 200;
const MOST = 200;

interface Seen {
  name: string;
  months: number | null;
  first_seen_at: string;
  last_seen_at: string;
}

/** Levels that the newest member events of an account's YouTube channel name, in the order of their first sight. */
export async function membershipTiers(db: Pick<Queryable, 'query'>, account_id: string): Promise<MembershipTier[]> {
  const seen = await db.query<Seen & Record<string, unknown>>(
    `select name, min(months) as months, min(created_at) as first_seen_at, max(created_at) as last_seen_at
     from (
       select created_at, coalesce(of_new.name, of_milestone.name) as name,
         case when of_milestone.months ~ '^[1-9][0-9]{0,3}$' then of_milestone.months::int end as months
       from (
         select created_at, raw -> 'snippet' as snippet from platform_event_logs
         where account_id = $1 and type = 'youtube:member' and platform = 'youtube'
         order by created_at desc, id desc limit ${NEWEST}) newest
         cross join lateral (select snippet -> 'newSponsorDetails' ->> 'memberLevelName' as name) of_new
         cross join lateral (select snippet -> 'memberMilestoneChatDetails' ->> 'memberLevelName' as name,
           snippet -> 'memberMilestoneChatDetails' ->> 'memberMonth' as months) of_milestone) named
     where char_length(name) between 1 and ${NAME}
     group by name order by min(created_at), name limit ${MOST}`,
    [account_id],
    'youtube-membership-tiers',
  );
  return seen.map(({ name, months, first_seen_at, last_seen_at }, sort_order) => ({
    ...{ tooltip: name, tier_name: name, badge_url: null },
    ...durationOf(months),
    ...{ member_months_min: months, sort_order, first_seen_at, last_seen_at },
  }));
}

function durationOf(months: number | null): Pick<MembershipTier, 'duration_value' | 'duration_unit'> {
  if (months === null) return { duration_value: null, duration_unit: null };
  const years = months % 12 === 0;
  const duration_value = years ? months / 12 : months;
  const unit = years ? ('YEAR' as const) : ('MONTH' as const);
  return { duration_value, duration_unit: duration_value === 1 ? unit : `${unit}S` };
}
