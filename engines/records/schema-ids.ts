/**
 * Header that names the schema of a record by its id in this repository, wherever the value names it by another one.
 */
export const SCHEMA_HEADER = 'lumio-schema';

/**
 * Which ids stand in values for the schemas of this repository. A registry gives ids of its own, for programs outside;
 * records then carry a header with ours, by which Lumio itself reads them: no registry is needed for that, and none can
 * make a record unreadable.
 */
export interface SchemaIds {
  /** Whether they differ from ours. */
  readonly foreign: boolean;
  /** Resolves when every id that is written is known; at once when they were known before. */
  ready(): Promise<void>;
  /** What stands in values of the topic for our schema. @throws Error before {@link ready} */
  onWire(topic: string, schema_id: number): number;
  /** Ours for what stands in a value without a header; undefined when it is nobody's. */
  ours(wire_id: number): number | undefined;
}

/** Values name our schemas by our own ids. */
export const OWN_IDS: SchemaIds = {
  foreign: false,
  ready: async () => undefined,
  onWire: (_topic, schema_id) => schema_id,
  ours: (wire_id) => wire_id,
};
