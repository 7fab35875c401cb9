import { InvalidArgumentError } from 'commander';
import { DEFAULT_ROLES } from '../../../domain/common/permissions';
import { isUuid } from '../../../lib/hash/uuid';
import type { AdminContext } from './services';

/** Loaded on use, because the modules for signing and sealing would delay help. */
export type Admin = typeof import('../index.js');

/** Runs the work with its dependencies and prints the result. */
export type Run = (work: (admin: Admin, context: AdminContext) => Promise<object>) => Promise<void>;

export const uuid = (text: string): string => {
  if (!isUuid(text)) throw new InvalidArgumentError('must be an id (a UUID).');
  return text.toLowerCase();
};
export const words =
  (longest: number) =>
  (text: string): string => {
    const trimmed = text.trim();
    if (trimmed === '' || trimmed.length > longest)
      throw new InvalidArgumentError(`must have 1 to ${longest} characters.`);
    return trimmed;
  };
/** Splits a comma-separated list; removes duplicates. */
export const names = (text: string): string[] => [...new Set(text.split(',').map((name) => name.trim()))];

/** Roles of members besides the owner. */
export const MEMBER_ROLES = DEFAULT_ROLES.map(({ slug }) => slug).filter((slug) => slug !== 'owner');
