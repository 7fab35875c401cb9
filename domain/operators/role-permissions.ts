import { DomainError } from '../../kernel/errors';

/**
 * Permissions of a role after a request for `wanted`, sorted. The change is a difference: a string unknown to the
 * registry stays where it was and is never added.
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

/** Visible and editable members of a role. */
interface Described {
  name: string;
  description: string | null;
  permissions: readonly string[] | null;
}

/** True when a change leaves a role as it is. */
export const describesSame = (a: Described, b: Described): boolean =>
  a.name === b.name && a.description === b.description && String(a.permissions) === String(b.permissions);
