import { InvalidArgumentError } from 'commander';
import { DEFAULT_ROLES } from '../../domain/permissions';
import { isUuid } from '../../kernel/uuid';
import type { AdminContext } from './services';

/** Loaded when it is used: help must not wait for what signs and seals. */
export type Admin = typeof import('./index.js');

/** Does the work with what it needs, and prints what it answers. */
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
/** A list by commas, each once. */
export const names = (text: string): string[] => [...new Set(text.split(',').map((name) => name.trim()))];

/** What members of an account may be beside its owner. */
export const MEMBER_ROLES = DEFAULT_ROLES.map(({ slug }) => slug).filter((slug) => slug !== 'owner');
