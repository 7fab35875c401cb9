import { z } from 'zod';

export const OPERATORS = [
  'equals',
  'not_equals',
  'less',
  'at_most',
  'greater',
  'at_least',
  'contains',
  'starts_with',
] as const;
export type Operator = (typeof OPERATORS)[number];

export const operator = z.enum(OPERATORS);
/** A side of a comparison; texts are templates. */
export const operand = z.union([z.string().max(2_000), z.number(), z.boolean()]);
export const comparison = z.strictObject({ left: operand, op: operator, right: operand });
export type Comparison = z.output<typeof comparison>;

const NUMBER = /^\s*[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?\s*$/i;

/** The number that a value is, or that it writes; undefined for another. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && NUMBER.test(value) ? Number(value) : undefined;
}

const textOf = (value: unknown): string =>
  value === undefined || value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);

/** Compares two numbers as numbers, other values as texts without case. */
export function holds(left: unknown, op: Operator, right: unknown): boolean {
  const [a, b] = [textOf(left).toLowerCase(), textOf(right).toLowerCase()];
  if (op === 'contains') return a.includes(b);
  if (op === 'starts_with') return a.startsWith(b);
  const [x, y] = [numberOf(left), numberOf(right)];
  const order = x !== undefined && y !== undefined ? Math.sign(x - y) : a < b ? -1 : Number(a > b);
  const results = {
    equals: order === 0,
    not_equals: order !== 0,
    less: order < 0,
    at_most: order <= 0,
    greater: order > 0,
    at_least: order >= 0,
  };
  return results[op];
}
