import type { Caller } from '../authentication/caller';
import { CONTEXTS } from '../authentication/contexts';

/** Whether the caller is the person themselves, by a session or a key of their own. Source: spec doc1 §5.8. */
export const isFirstParty = ({ kind, client }: Pick<Caller, 'kind' | 'client'>): boolean =>
  CONTEXTS[kind].first_party && client === undefined;

/**
 * Whether `granted` includes `name`. A system key's `resource:*` includes every action of that resource, `*:*` only
 * itself. Source: spec doc1 §5.4.
 */
export function hasPermission(caller: Pick<Caller, 'kind'>, granted: ReadonlySet<string>, name: string): boolean {
  if (granted.has(name)) return CONTEXTS[caller.kind].rbac;
  return caller.kind === 'system_key' && granted.has(`${name.slice(0, name.indexOf(':'))}:*`);
}
