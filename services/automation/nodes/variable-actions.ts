import { numberOf } from '../../../domain/automation/nodes/comparisons';
import type { RunCause } from '../../../domain/automation/automation-runs';
import { templateNames } from '../../../domain/automation/templates/expand';
import { eventValues } from '../../../domain/automation/templates/values';
import type { Queryable } from '../../../engines/postgres/port';
import { addToVariable, type PersonalValue, sealVariable, setVariable } from '../automations/variables';
import { type Executor, expanded, failed, type Outcome, type StepTools, type StepWork } from './executor';

type Written = Awaited<ReturnType<typeof setVariable>>;
type Value = number | string | boolean;

/** Writes in the transaction that ends the step, so that a step writes once. */
const writing = (write: (tx: Queryable) => Promise<Written>): Outcome => ({
  status: 'succeeded',
  async output(tx) {
    const result = await write(tx);
    return 'error' in result ? failed(result.error.toLowerCase()) : 'done';
  },
});

/** Whether a text is the id or the name of the person of the cause. */
function isIdentity(text: string, { subject, author, event }: RunCause): boolean {
  const user = event === null ? undefined : (eventValues(event).user as { name: string | null } | undefined);
  const id = subject?.slice(subject.indexOf(':') + 1);
  return [id, author?.id, author?.name, user?.name].includes(text.trim());
}

/** A text of values about the person of the cause is sealed. */
async function storable(
  { account_id, cause, config }: StepWork,
  name: string,
  value: Value,
  { texts }: StepTools,
): Promise<Value | PersonalValue> {
  const { subject, person } = cause;
  if (typeof value !== 'string' || subject === null || person === null) return value;
  if (templateNames(config.value as string).length === 0) return value;
  return sealVariable(
    texts,
    { account_id, name },
    { text: value, subject, person, is_identity: isIdentity(value, cause) },
  );
}

export const writeVariable: Executor = {
  input: ({ config, expand }) => ({ name: config.name, value: expanded(config.value, expand) }),
  async run(work, input, tools) {
    const name = input.name as string;
    const value = await storable(work, name, input.value as Value, tools);
    return writing((tx) => setVariable(tx, { account_id: work.account_id, name }, value));
  },
};

export const addAmount: Executor = {
  input: ({ config, expand }) => ({ name: config.name, amount: expanded(config.amount, expand) }),
  async run({ account_id }, { name, amount }) {
    const number = numberOf(amount);
    if (number === undefined || !Number.isFinite(number)) return failed('not_a_number');
    return writing((tx) => addToVariable(tx, { account_id, name: name as string }, number));
  },
};
