/**
 * Header with the id of a record's schema in this repository, used when the value has an id of a registry.
 */
export const SCHEMA_HEADER = 'lumio-schema';

/**
 * Ids in values for the schemas of this repository. A registry assigns ids of its own, for programs outside; records
 * then have a header with our id, by which Lumio itself reads them, so that reading needs no registry and none can make
 * a record unreadable.
 */
export interface SchemaIds {
  /** Whether the ids differ from ours. */
  readonly foreign: boolean;
  /** Resolves when the ids of all written schemas are known; at once when they were known before. */
  ready(): Promise<void>;
  /** Id in values of the topic for our schema. @throws Error before {@link ready} */
  onWire(topic: string, schema_id: number): number;
  /** Our id for the id in a value without a header; undefined for an unknown one. */
  ours(wire_id: number): number | undefined;
}

/** Ids without a registry: values have our own ids. */
export const OWN_IDS: SchemaIds = {
  foreign: false,
  ready: async () => undefined,
  onWire: (_topic, schema_id) => schema_id,
  ours: (wire_id) => wire_id,
};
