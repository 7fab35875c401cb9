const MB = 1024 * 1024;
/** Stands for "no bound" where a plan must name a number; also the largest that GraphQL's `Int` holds. */
export const UNBOUNDED = 2 ** 31 - 1;

/**
 * Limits of a plan with their defaults. The first five are members of a plan of their own; the areas that own the
 * others' resources enforce them. Source: spec doc1 §8, doc2 §2.8, extra-facts §3 and §18, ruling c67.
 */
export const PLAN_LIMITS = {
  max_overlays: 3,
  max_storage_bytes: 100 * MB,
  max_upload_size_bytes: 5 * MB,
  max_integrations: 2,
  /** Days; 0 keeps everything. */
  chat_retention_days: 7,
  max_sounds: 50,
  max_sound_file_size: 5 * MB,
  max_sound_storage_bytes: 100 * MB,
  max_accounts: 1,
  /** Bytes of `raw` of emitted events, in a day of UTC. */
  max_emitted_bytes_per_day: 1024 * MB,
} as const satisfies Readonly<Record<string, number>>;
export type PlanLimit = keyof typeof PLAN_LIMITS;

/** Members of a plan; in the order of the documents. */
export const NAMED_LIMITS = [
  'max_overlays',
  'max_storage_bytes',
  'max_upload_size_bytes',
  'max_integrations',
  'chat_retention_days',
] as const satisfies readonly PlanLimit[];

/** Limits that a plan lists next to its members. */
export const OTHER_LIMITS = (Object.keys(PLAN_LIMITS) as PlanLimit[]).filter(
  (name) => !(NAMED_LIMITS as readonly string[]).includes(name),
);

export const isPlanLimit = (name: string): name is PlanLimit => Object.hasOwn(PLAN_LIMITS, name);

/** Limits of a plan; a missing one has its default. */
export type Limits = Readonly<Partial<Record<string, number>>>;

/** Numbers that a limit may be: whole, and exact in JSON. */
export const isLimitValue = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;

/** The plan of an account that was given no other, and where a downgrade lands. */
export const FREE_PLAN_ID = '00000000-0000-7000-8000-0000000f4ee0';
export const PRO_PLAN_ID = '00000000-0000-7000-8000-000000000940';

/** Limits of the plans of a new installation. Source: spec extra-facts §3 and §18. */
export const SEEDED_LIMITS: Readonly<Record<'free' | 'pro', Limits>> = {
  free: {
    max_overlays: 3,
    max_storage_bytes: 100 * MB,
    max_upload_size_bytes: 5 * MB,
    max_integrations: 2,
    chat_retention_days: 7,
    max_accounts: 1,
  },
  pro: {
    max_overlays: 25,
    max_storage_bytes: 2048 * MB,
    max_upload_size_bytes: 25 * MB,
    max_integrations: UNBOUNDED,
    chat_retention_days: 90,
    max_accounts: 3,
  },
};
