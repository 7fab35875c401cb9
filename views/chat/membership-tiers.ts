import { z } from 'zod';
import type { Queryable } from '../../engines/postgres/port';

const UNITS = ['MONTH', 'MONTHS', 'YEAR', 'YEARS'] as const;

/** A tier of a YouTube channel's memberships, by how long its members are there. Source: spec doc2 §2.10. */
export const MembershipTier = z
  .object({
    tooltip: z.string().describe('`Level name (6 months)`, as the badge shows it'),
    tier_name: z.string(),
    badge_url: z.string().nullable().describe('YouTube does not tell it'),
    duration_value: z.int().min(1),
    duration_unit: z.enum(UNITS).meta({ id: 'MembershipDurationUnit' }),
    member_months_min: z.int().min(0).describe('Months from which a member has the badge'),
    sort_order: z.int().min(0),
    first_seen_at: z.iso.datetime(),
    last_seen_at: z.iso.datetime(),
  })
  .meta({ id: 'GqlYoutubeMembershipTier' });
export type MembershipTier = z.output<typeof MembershipTier>;

/** Newest member events that are read for the tiers. */
const NEWEST = 1_000;
/** Longest name of a level in characters, and most tiers: events may be emitted with any. */
const NAME = 200;
const MOST = 200;

interface Seen {
  name: string;
  months: number;
  first_seen_at: string;
  last_seen_at: string;
}

/** Tiers that the newest member events of an account's YouTube channel name, the shortest membership first. */
export async function membershipTiers(db: Pick<Queryable, 'query'>, account_id: string): Promise<MembershipTier[]> {
  const seen = await db.query<Seen & Record<string, unknown>>(
    `select name, months, min(created_at) as first_seen_at, max(created_at) as last_seen_at
     from (
       select created_at, coalesce(of_new.name, of_milestone.name) as name,
         case when of_milestone.months ~ '^[0-9]{1,4}$' then of_milestone.months::int else 0 end as months
       from (
         select created_at, raw -> 'snippet' as snippet from platform_event_logs
         where account_id = $1 and type = 'youtube:member' and platform = 'youtube'
         order by created_at desc, id desc limit ${NEWEST}) newest
         cross join lateral (select snippet -> 'newSponsorDetails' ->> 'memberLevelName' as name) of_new
         cross join lateral (select snippet -> 'memberMilestoneChatDetails' ->> 'memberLevelName' as name,
           snippet -> 'memberMilestoneChatDetails' ->> 'memberMonth' as months) of_milestone) named
     where char_length(name) between 1 and ${NAME}
     group by name, months order by months, min(created_at), name limit ${MOST}`,
    [account_id],
    'youtube-membership-tiers',
  );
  return seen.map(({ name, months, ...at }, sort_order) => {
    const { duration_value, duration_unit, words } = durationOf(Math.max(months, 1));
    const tooltip = months === 0 ? name : `${name} (${words})`;
    const tier = { tooltip, tier_name: name, badge_url: null, duration_value, duration_unit };
    return { ...tier, member_months_min: months, sort_order, ...at };
  });
}

function durationOf(months: number) {
  const years = months % 12 === 0;
  const duration_value = years ? months / 12 : months;
  const unit = years ? ('YEAR' as const) : ('MONTH' as const);
  const duration_unit = duration_value === 1 ? unit : (`${unit}S` as const);
  return { duration_value, duration_unit, words: `${duration_value} ${duration_unit.toLowerCase()}` };
}
