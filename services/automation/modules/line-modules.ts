import { type ExemptRole, LINE_MODULES, type LineModule, moduleFlag } from '../../../domain/automation/bot-modules';
import { linkedHosts, isAllowed } from '../../../domain/automation/modules/linked-hosts';
import type { ModuleConfig } from '../../../domain/automation/modules/module-configs';
import { isSpam } from '../../../domain/automation/modules/spam';
import type { ChatMessage } from '../../../domain/chat/chat-messages';
import { type Queryable, textArray } from '../../../engines/postgres/port';
import { accountFlags } from '../account-flags';
import { compiledWords } from './compiled-words';

/** A module of an account that is on and acts on lines. */
export interface ActiveModule<Name extends LineModule = LineModule> {
  account_id: string;
  module_name: Name;
  /** JSON text. */
  config: string;
  exempt_roles: readonly ExemptRole[];
}

/** Modules of accounts that are on and act on lines, by account. */
export async function lineModules(
  db: Pick<Queryable, 'query'>,
  accounts: readonly string[],
): Promise<ReadonlyMap<string, readonly ActiveModule[]>> {
  const rows = await db.query<ActiveModule & Record<string, unknown>>(
    `select account_id, module_name, config::text as config, exempt_roles from bot_modules
     where account_id = any($1::text[]::uuid[]) and enabled and module_name = any($2::text[])
     order by account_id, module_name`,
    [textArray([...new Set(accounts)]), textArray([...LINE_MODULES])],
    'line-modules',
  );
  const isOn = await accountFlags(
    db,
    rows.map(({ account_id }) => account_id),
    LINE_MODULES.map(moduleFlag),
  );
  const on = rows.filter(({ account_id, module_name }) => isOn(moduleFlag(module_name), account_id));
  const modules = new Map<string, ActiveModule[]>();
  for (const row of on) modules.set(row.account_id, [...(modules.get(row.account_id) ?? []), row]);
  return modules;
}

/** Whether a module objects to a line. */
export function objects({ module_name, config }: ActiveModule, { text, parts }: ChatMessage): boolean {
  switch (module_name) {
    case 'link_protection': {
      const { allowed_domains = [] } = JSON.parse(config) as ModuleConfig<'link_protection'>;
      return linkedHosts(text).some((host) => !isAllowed(host, allowed_domains));
    }
    case 'spam_protection':
      return isSpam(parts, JSON.parse(config) as ModuleConfig<'spam_protection'>);
    case 'word_filter':
      return compiledWords(config).matches(text);
  }
}
