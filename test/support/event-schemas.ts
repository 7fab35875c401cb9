import fc from 'fast-check';
import { z } from 'zod';
import type { EventCatalogue, EventDeclaration } from '../../kernel/event';
import type { JsonObject } from '../../lib/json/json';
import { arbitraryData } from './arbitrary-event';

/** What is kept of each type, by version: the JSON Schema of its data, or a sample as it is stored. */
export type Kept = Record<string, Record<string, JsonObject>>;

/** A personal member as readers outside meet it. */
const SEALED = {
  description: 'Encrypted under the key of the person whose it is',
  type: ['object', 'null'],
  properties: { $sealed: { type: 'string' }, $key: { type: 'string' } },
  required: ['$sealed', '$key'],
  additionalProperties: false,
};

/** The JSON Schema of an event's data in the topic `domain-events`. */
function schemaOf({ schema, personal }: EventDeclaration): JsonObject {
  const derived = z.toJSONSchema(schema, {
    // A format says it all; the pattern beside it differs from one version of zod to the next.
    override: ({ jsonSchema }) => void (jsonSchema.format !== undefined && delete jsonSchema.pattern),
  }) as JsonObject;
  const members = Object.keys(personal).filter((member) => member in schema.shape);
  const sealed = Object.fromEntries(members.map((member) => [member, SEALED]));
  return { ...derived, properties: { ...(derived['properties'] as JsonObject), ...sealed } };
}

const sampleOf = (declaration: EventDeclaration): JsonObject => {
  const [data] = fc.sample(arbitraryData(declaration), { seed: 1, numRuns: 1 });
  return { ...(data as JsonObject), ...(declaration.version > 1 && { $v: declaration.version }) };
};

/** What is kept, with what the declarations add to it; of what is kept nothing is changed. */
export function withNewest(declared: EventCatalogue, kept: { schemas: Kept; samples: Kept }): typeof kept {
  const added = (of: Kept, make: (declaration: EventDeclaration) => JsonObject): Kept =>
    Object.fromEntries(
      [...new Set([...Object.keys(of), ...declared.keys()])].sort().map((type) => {
        const declaration = declared.get(type);
        return [type, { ...(declaration && { [declaration.version]: make(declaration) }), ...of[type] }];
      }),
    );
  return { schemas: added(kept.schemas, schemaOf), samples: added(kept.samples, sampleOf) };
}

/** A schema without its words, which may change. */
const shape = (schema: JsonObject): string =>
  JSON.stringify(schema, (key, value: unknown) =>
    key === 'description' && typeof value === 'string' ? undefined : value,
  );

/** What must be mended first: types that changed without a new version, types that were stored once and are gone. */
export function broken(declared: EventCatalogue, schemas: Kept): string[] {
  return Object.entries(schemas).flatMap(([type, versions]) => {
    const declaration = declared.get(type);
    if (declaration === undefined) return [`${type} was stored and is declared no more`];
    const kept = versions[declaration.version];
    const same = kept === undefined || shape(kept) === shape(schemaOf(declaration));
    return same ? [] : [`${type} changed: raise its version and bring an upcaster`];
  });
}
