import { randomInt } from 'node:crypto';
import type { JobTools } from '../../../app/job';
import { asPlainText, expandTemplate } from '../../../domain/automation/templates/expand';
import { MAX_INPUT, NO_CAUSE, RUN_DAYS, RunCause, type RunStart } from '../../../domain/automation/automation-runs';
import type { Queryable } from '../../../engines/postgres/port';
import type { PersonalTexts } from '../../../privacy/subject-keys/port';
import { accountFlags } from '../account-flags';
import type { Expand } from '../nodes/executor';
import { templateContext } from '../automations/template-context';
import { maskOf } from '../modules/masks';
import { isOpen, type RunRow, runsWhere, stepOf, type StepRow } from './rows';

/** Whether an account has automations. */
export async function hasAutomations(db: Pick<Queryable, 'query'>, account_id: string): Promise<boolean> {
  const isOn = await accountFlags(db, [account_id], ['feature:automation']);
  return isOn('feature:automation', account_id);
}

type RunOf = Pick<RunRow, 'account_id' | 'automation_id' | 'reward_id'>;

/** Whether the automation or reward of a run is enabled. */
export async function isEnabled(
  db: Pick<Queryable, 'query'>,
  { account_id, automation_id, reward_id }: RunOf,
): Promise<boolean> {
  const rows = await db.query(
    `select 1 as one from automations where account_id = $1 and id = $2 and enabled
     union all select 1 from rewards where account_id = $1 and id = $3 and enabled`,
    [account_id, automation_id, reward_id],
    'automation-wanted',
  );
  return rows.length > 0;
}

/** Whether the automation or reward of a run is enabled, and its account has the feature. */
export const isRunWanted = async (db: Pick<Queryable, 'query'>, of: RunOf): Promise<boolean> =>
  (await isEnabled(db, of)) && hasAutomations(db, of.account_id);

/** An open step and its run; undefined once either has ended. */
export async function openStep(
  db: JobTools['db'],
  { run_id, step_id }: { run_id: string; step_id: string },
): Promise<{ run: RunRow; step: StepRow } | undefined> {
  const [[run], step] = await Promise.all([runsWhere(db, 'r.id = $1', [run_id]), stepOf(db, step_id)]);
  if (run === undefined || step === undefined || !isOpen(run.status) || !isOpen(step.status)) return undefined;
  return { run, step };
}

const causeContext = (run_id: string) => `automation-run ${run_id}`;
const NOTHING = JSON.stringify(NO_CAUSE);
const inputContext = (step_id: string) => `automation-step ${step_id}`;

const DAY_MS = 86_400_000;
/** Days for which a key of an account holds: longer than runs wait and are kept. */
const KEY_DAYS = 3 * RUN_DAYS;

/** Owner of the key of a run's values: the person of the cause, else the account for a day. */
function keyOwner(account_id: string, subject: string | null, now_ms = Date.now()): [string, Date?] {
  if (subject !== null) return [subject];
  const day = Math.floor(now_ms / DAY_MS);
  return [`automation:${account_id}:${day}`, new Date((day + 1 + KEY_DAYS) * DAY_MS)];
}

/** The cause of a run as its row keeps it. */
export async function sealCause(
  texts: PersonalTexts,
  { account_id, run_id, subject, cause }: Pick<RunStart, 'account_id' | 'run_id' | 'subject' | 'cause'>,
) {
  if (cause === null || cause === NOTHING) return { key_id: null, sealed: null };
  const [owner, expires_at] = keyOwner(account_id, subject);
  return texts.seal(owner, cause, causeContext(run_id), expires_at);
}

/** The cause of a run; null once its person was erased. */
export async function openCause(
  texts: PersonalTexts,
  { id, cause_key_id: key_id, cause }: Pick<RunRow, 'id' | 'cause_key_id' | 'cause'>,
): Promise<RunCause | null> {
  if (cause === null) return NO_CAUSE;
  const text = key_id === null ? cause : await texts.open({ key_id, sealed: cause }, causeContext(id));
  return text === null ? null : RunCause.parse(JSON.parse(text));
}

/** Input of a step as its row keeps it. */
export async function sealInput(
  texts: PersonalTexts,
  {
    account_id,
    subject,
    step_id,
    input,
  }: { account_id: string; subject: string | null; step_id: string; input: object },
): Promise<{ input_key_id: string; input: string }> {
  const [owner, expires_at] = keyOwner(account_id, subject);
  const { key_id, sealed } = await texts.seal(owner, JSON.stringify(input), inputContext(step_id), expires_at);
  return { input_key_id: key_id, input: sealed };
}

export const openInput = (
  texts: PersonalTexts,
  { id, input_key_id: key_id, input }: { id: string; input_key_id: string | null; input: string },
): Promise<string | null> =>
  key_id === null ? Promise.resolve(input) : texts.open({ key_id, sealed: input }, inputContext(id));

/** Templates of a step. */
export interface StepTemplates {
  /** @throws InputTooLarge beyond {@link MAX_INPUT} characters of values since the last {@link inputOf} began */
  expand: Expand;
  /** Result of `read`, which expands; null where the values are too long. */
  inputOf<Input>(read: () => Input): Input | null;
  /** Names without a value that the expanded templates had, each once. */
  unknownNames(): string[];
}

class InputTooLarge extends Error {}

/** Expands the templates of a config; filtered words in values are masked. */
export async function templatesOf(
  services: Pick<JobTools, 'db' | 'texts'>,
  run: { account_id: string; permissions: readonly string[] | null },
  cause: RunCause,
  config: object,
): Promise<StepTemplates> {
  const permissions = run.permissions === null ? null : new Set(run.permissions);
  const values = await templateContext(
    services,
    { ...cause, account_id: run.account_id, permissions, now_ms: Date.now() },
    textsOf(config),
  );
  const mask = await maskOf(services.db, run.account_id);
  const names = new Set<string>();
  let characters = 0;
  const counted = (value: string): string => {
    characters += value.length;
    if (characters > MAX_INPUT) throw new InputTooLarge();
    return value;
  };
  return {
    unknownNames: () => [...names],
    inputOf(read) {
      characters = 0;
      try {
        return read();
      } catch (error) {
        if (error instanceof InputTooLarge) return null;
        throw error;
      }
    },
    expand(template, encode = asPlainText) {
      const { text, unknown } = expandTemplate(template, values, (value) => counted(encode(mask(value))), randomInt);
      for (const name of unknown) names.add(name);
      return text;
    },
  };
}

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : [];
}
