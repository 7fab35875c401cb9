import type { ExemptRole } from '../../../domain/automation/bot-modules';
import { lineExpiry } from '../../../domain/automation/command-answers';
import {
  ACT_ON_LINE,
  actOfWarning,
  type ModuleAction,
  possibleAct,
  strongestOf,
  WARNINGS_MS,
} from '../../../domain/automation/modules/module-acts';
import { TIMEOUT_SECONDS } from '../../../domain/automation/modules/module-configs';
import type { ChatMessage } from '../../../domain/chat/chat-messages';
import { type Queryable, textArray } from '../../../engines/postgres/port';
import type { JobRequest } from '../../../kernel/job';
import { answerable, type ChatLine, isBroadcaster } from '../chat-lines';
import { type ActiveModule, objects } from './line-modules';

/** The strongest act of an account's modules on a line. */
interface LineAct extends ChatLine {
  module_name: ActiveModule['module_name'];
  action: ModuleAction;
  timeout_seconds: number;
  is_warning: boolean;
}

/** Jobs of modules that act on lines: one act for a line. Warnings are counted in the order of the lines. */
export async function actJobs(
  lines: readonly ChatLine[],
  modules: ReadonlyMap<string, readonly ActiveModule[]>,
  tx: Queryable,
): Promise<JobRequest[]> {
  const acts = lines.flatMap((line) => actOn(line, modules.get(line.account_id) ?? []) ?? []);
  const decided = await countWarnings(await answerable(acts, tx), tx);
  if (decided.length > 0) await tx.query(KEEP, [JSON.stringify(decided.map(keptOf))], 'bot-module-acts-keep');
  return decided.map(request);
}

function actOn(line: ChatLine, modules: readonly ActiveModule[]): LineAct | null {
  if (isBroadcaster(line) || line.message.roles.some((role) => ALWAYS_EXEMPT.has(role))) return null;
  const objecting = modules.filter((one) => !isExempt(one.exempt_roles, line.message) && objects(one, line.message));
  const most = strongestOf(
    objecting.map(({ module_name, config }) => {
      const { action = 'delete', timeout_seconds = TIMEOUT_SECONDS } = JSON.parse(config) as Acting;
      return { module_name, action, timeout_seconds, is_warning: action === 'warn' };
    }),
  );
  return most === undefined ? null : { ...line, ...most };
}

interface Acting {
  action?: ModuleAction;
  timeout_seconds?: number;
}

const ALWAYS_EXEMPT: ReadonlySet<string> = new Set(['broadcaster', 'moderator']);
const ROLES: Readonly<Record<ExemptRole, readonly string[]>> = {
  moderators: ['moderator'],
  vips: ['vip'],
  subscribers: ['subscriber', 'founder'],
};
const isExempt = (exempt: readonly ExemptRole[], { roles }: ChatMessage): boolean =>
  exempt.some((one) => roles.some((role) => ROLES[one].includes(role)));

const WARNINGS = `
  select account_id, person, (extract(epoch from acted_at) * 1000)::float8 as at_ms from bot_module_acts
  where is_warning and acted_at > to_timestamp($3::float8 / 1000)
    and (account_id, person) in (select a::uuid, p from unnest($1::text[], $2::text[]) asked (a, p))`;
const KEEP = `
  insert into bot_module_acts (account_id, id, person, module_name, is_warning, acted_at, expires_at)
  select account_id, id, person, module_name, is_warning, to_timestamp(at_ms / 1000),
    to_timestamp(at_ms / 1000) + interval '1 hour'
  from json_to_recordset($1::json)
    n (account_id uuid, id uuid, person text, module_name text, is_warning boolean, at_ms float8)
  on conflict do nothing`;

const keptOf = ({ account_id, id, person, module_name, is_warning, at_ms }: LineAct) => ({
  ...{ account_id, id, person, module_name, is_warning, at_ms },
});
const personKey = ({ account_id, person }: Pick<LineAct, 'account_id' | 'person'>) => `${account_id} ${person}`;

/** Later warnings of a person within an hour are stronger acts. */
async function countWarnings(acts: readonly LineAct[], tx: Queryable): Promise<LineAct[]> {
  const warnings = acts.filter(({ is_warning }) => is_warning);
  if (warnings.length === 0) return [...acts];
  const earliest_ms = Math.min(...warnings.map(({ at_ms }) => at_ms)) - WARNINGS_MS;
  const rows = await tx.query<Pick<LineAct, 'account_id' | 'person' | 'at_ms'> & Record<string, unknown>>(
    WARNINGS,
    [
      textArray(warnings.map(({ account_id }) => account_id)),
      textArray(warnings.map(({ person }) => person)),
      earliest_ms,
    ],
    'bot-module-warnings',
  );
  const times = new Map<string, number[]>();
  const add = (of: Pick<LineAct, 'account_id' | 'person' | 'at_ms'>): number[] => {
    const all = [...(times.get(personKey(of)) ?? []), of.at_ms];
    times.set(personKey(of), all);
    return all;
  };
  rows.forEach(add);
  return acts.map((act) => {
    if (!act.is_warning) return act;
    const recent = add(act).filter((at_ms) => at_ms > act.at_ms - WARNINGS_MS);
    return { ...act, action: actOfWarning(recent.length) };
  });
}

function request(act: LineAct): JobRequest {
  const { id, account_id, platform, platform_user_id, person, at_ms, message, message_id, module_name, action } = act;
  const payload = {
    ...{ account_id, module_name, platform, cause_id: id, channel_id: message.channel_id, message_id, person },
    ...{ action: possibleAct(action, platform, message_id), wanted: action, timeout_seconds: act.timeout_seconds },
    ...{ live_chat_id: message.live_chat_id, at_ms, platform_user_id },
  };
  return { name: ACT_ON_LINE, key: id, payload, expires_at: lineExpiry(at_ms) };
}
