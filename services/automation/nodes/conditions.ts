import { randomInt } from 'node:crypto';
import { type BotRole, isWeaker } from '../../../domain/automation/bot-roles';
import { type Comparison, holds } from '../../../domain/automation/nodes/comparisons';
import { isOnAir } from './on-air';
import { decided, type Executor, expanded, type Outcome, type StepTools, type StepWork } from './executor';

/** Decides by what is there, and changes nothing before its step ends. */
export interface Condition extends Executor {
  run(work: StepWork, input: Record<string, unknown>, tools: Pick<StepTools, 'db'>): Promise<Outcome>;
}

const isTrue = ({ left, op, right }: Comparison): boolean => holds(left, op, right);
const input = ({ config, expand }: StepWork) => expanded(config, expand) as Record<string, unknown>;

export const compare: Condition = { input, run: async (_work, at) => decided(isTrue(at as unknown as Comparison)) };
export const all: Condition = {
  input,
  run: async (_work, { conditions }) => decided((conditions as Comparison[]).every(isTrue)),
};
export const any: Condition = {
  input,
  run: async (_work, { conditions }) => decided((conditions as Comparison[]).some(isTrue)),
};
export const not: Condition = { input, run: async (_work, { condition }) => decided(!isTrue(condition as Comparison)) };

/** Steps of a percent that chances know. */
const PARTS = 1_000_000;
export const chance: Condition = {
  input,
  run: async (_work, { percent }) => decided(randomInt(100 * PARTS) < (percent as number) * PARTS),
};

export const role: Condition = {
  input,
  run: async ({ cause }, { min_role }) =>
    decided(!isWeaker((cause.author?.role ?? 'everyone') as BotRole, min_role as BotRole)),
};

export const platform: Condition = {
  input,
  run: async ({ cause }, { platforms }) => decided((platforms as (string | null)[]).includes(cause.platform)),
};

export const live: Condition = {
  input,
  run: async ({ account_id }, { platforms }, { db }) =>
    decided(await isOnAir(db, account_id, (platforms as string[] | undefined) ?? null)),
};

/** Takes a cooldown in the transaction of the step: of two steps at once one is true. */
export const cooldown: Condition = {
  input,
  async run({ account_id, automation_id, node_id, cause }, { seconds, scope }) {
    const person = scope === 'user' ? (cause.person ?? '') : '';
    return {
      status: 'succeeded',
      async output(tx) {
        const taken = await tx.query(
          `insert into automation_cooldowns as c (automation_id, node_id, person, account_id, used_at, expires_at)
           values ($1, $2, $3, $4, clock_timestamp(), clock_timestamp() + make_interval(secs => $5))
           on conflict (automation_id, node_id, person) do update set used_at = excluded.used_at,
             expires_at = excluded.expires_at
           where c.used_at + make_interval(secs => $5) <= excluded.used_at returning 1 as one`,
          [automation_id, node_id, person, account_id, seconds],
        );
        return taken.length > 0 ? 'true' : 'false';
      },
    };
  },
};
