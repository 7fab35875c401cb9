import { DomainError } from '../kernel/errors';

/**
 * What a role lists once `wanted` was asked for, sorted. The change is a difference: a string that the registry does
 * not know stays where it was and comes nowhere new.
 * @throws DomainError `UNKNOWN_PERMISSION`
 */
export function permissionsAfter(
  before: readonly string[],
  wanted: readonly string[],
  isKnown: (name: string) => boolean,
): string[] {
  const unknown = wanted.find((name) => !isKnown(name) && !before.includes(name));
  if (unknown !== undefined) throw new DomainError('UNKNOWN_PERMISSION', { permission: unknown });
  return [...new Set([...wanted, ...before.filter((name) => !isKnown(name))])].sort();
}

/** What is shown of a role, and changed on it. */
interface Described {
  name: string;
  description: string | null;
  permissions: readonly string[] | null;
}

/** True when a change leaves a role as it is. */
export const describesSame = (a: Described, b: Described): boolean =>
  a.name === b.name && a.description === b.description && String(a.permissions) === String(b.permissions);
