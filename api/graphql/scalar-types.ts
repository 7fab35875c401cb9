import { GraphQLFloat, GraphQLInt, GraphQLString, type GraphQLScalarType } from 'graphql';
import { DateTime, Int53, Uuid } from './scalars';

/**
 * Scalar of a text. Times are `String` in inputs, as in the specification (spec doc2 §2.5), and `DateTime` in answers.
 */
export function textType(
  def: { format?: string; checks?: { _zod: { def: Record<string, unknown> } }[] },
  side: 'input' | 'output',
) {
  const format = def.format ?? def.checks?.map((check) => check._zod.def.format).find((found) => found !== undefined);
  if (format === 'uuid' || format === 'guid') return Uuid;
  return format === 'datetime' && side === 'output' ? DateTime : GraphQLString;
}

/** Scalar of a number: `Float`, `Int`, or `Int53` for whole numbers beyond 32 bits. */
export function numberType(def: {
  format?: string;
  checks?: { _zod: { def: Record<string, unknown> } }[];
}): GraphQLScalarType {
  const checks = (def.checks ?? []).map((check) => check._zod.def);
  const whole = /int/.test(def.format ?? '') || checks.some((check) => /int/.test(String(check.format ?? '')));
  if (!whole) return GraphQLFloat;
  const exceeds_int = checks.some((check) => check.check === 'less_than' && Number(check.value) > 2 ** 31 - 1);
  return exceeds_int ? Int53 : GraphQLInt;
}
