import fc from 'fast-check';
import type { z } from 'zod';
import type { EventDeclaration } from '../../kernel/event';

interface Definition {
  type: string;
  format?: string;
  innerType?: z.core.$ZodType;
  element?: z.core.$ZodType;
  entries?: Record<string, string>;
  values?: readonly unknown[];
  shape?: Record<string, z.core.$ZodType>;
  valueType?: z.core.$ZodType;
}

const small = (values: number, shown: (n: number) => unknown) => fc.integer({ min: 1, max: values }).map(shown);

/** Values of a schema out of small pools, so that members of different events often agree. */
function arbitraryValue(schema: z.core.$ZodType): fc.Arbitrary<unknown> {
  const definition = schema._zod.def as Definition;
  switch (definition.format ?? definition.type) {
    case 'uuid':
      return small(3, (n) => `00000000-0000-7000-8000-00000000000${n}`);
    case 'datetime':
      return small(5, (n) => `2026-01-0${n}T00:00:00.000Z`);
    case 'int32':
    case 'safeint':
    case 'number':
      return small(5, (n) => n);
    case 'string':
      return small(3, (n) => `text ${n}`);
    case 'boolean':
      return fc.boolean();
    case 'enum':
      return fc.constantFrom(...Object.values(definition.entries!));
    case 'literal':
      return fc.constantFrom(...definition.values!);
    case 'nullable':
      return fc.option(arbitraryValue(definition.innerType!));
    case 'array':
      return fc.array(arbitraryValue(definition.element!), { minLength: 1, maxLength: 3 });
    case 'object':
      return fc.record(
        Object.fromEntries(Object.entries(definition.shape!).map(([name, member]) => [name, arbitraryValue(member)])),
      );
    case 'record':
      return fc.dictionary(
        small(3, (n) => `text ${n}`) as fc.Arbitrary<string>,
        arbitraryValue(definition.valueType!),
        { minKeys: 1, maxKeys: 3, noNullPrototype: true },
      );
    default:
      throw new Error(`no generator for a member of type ${definition.type}`);
  }
}

/** Data that fit a declaration. */
export const arbitraryData = ({ schema }: EventDeclaration): fc.Arbitrary<Record<string, unknown>> =>
  arbitraryValue(schema) as fc.Arbitrary<Record<string, unknown>>;
