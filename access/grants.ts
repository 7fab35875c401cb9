import type { Caller } from './caller';
import { CONTEXTS } from './contexts';

/** Whether the caller is the person themselves, by a session or a key of their own. Source: spec doc1 §5.8. */
export const isFirstParty = ({ kind, client }: Pick<Caller, 'kind' | 'client'>): boolean =>
  CONTEXTS[kind].first_party && client === undefined;

/**
 * Whether `granted` holds `name`; a system key's `resource:*` stands for every action of that resource, `*:*` for
 * nothing but itself. Source: spec doc1 §5.4.
 */
export function holds(caller: Pick<Caller, 'kind'>, granted: ReadonlySet<string>, name: string): boolean {
  if (granted.has(name)) return CONTEXTS[caller.kind].rbac;
  return caller.kind === 'system_key' && granted.has(`${name.slice(0, name.indexOf(':'))}:*`);
}
