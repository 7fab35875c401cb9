import { z } from 'zod';
import { MAX_TEMPLATE_BYTES } from '../templates/expand';

export const FAMILIES = ['trigger', 'condition', 'action'] as const;
export type Family = (typeof FAMILIES)[number];

/** Outputs of a node, by its family; the first is the default of an edge. */
export const OUTPUTS = {
  trigger: ['next'],
  condition: ['true', 'false'],
  action: ['done', 'failed'],
} as const satisfies Record<Family, readonly string[]>;
export type Output = (typeof OUTPUTS)[Family][number];

/** A text with places for values of the run. */
export const anyTemplate = z
  .string()
  .max(MAX_TEMPLATE_BYTES)
  .refine((text) => Buffer.byteLength(text) <= MAX_TEMPLATE_BYTES, 'a template has at most 16 KiB');
export const template = anyTemplate.min(1);

/** Things of an account that a config names by their ids. */
export type ReferenceKind = 'automation' | 'overlay' | 'layer' | 'sound' | 'discord_channel';

/** A type of nodes. */
export interface NodeType {
  /** `<family>:<name>` */
  type: string;
  family: Family;
  summary: string;
  config: z.ZodObject;
  outputs: readonly string[];
  /** Members of the config that name a thing of the account, and its kind. */
  references: Readonly<Record<string, ReferenceKind>>;
  /** Members of the config that exports leave out: ids, secrets and addresses. */
  private_members: readonly string[];
  /** Members of the config that are addresses outside. */
  addresses: readonly string[];
}

interface Options<Shape extends z.core.$ZodShape> {
  summary: string;
  config?: Shape;
  references?: { [Member in keyof Shape]?: ReferenceKind };
  /** Problem of several members together; null of a valid config. */
  check?: (config: z.output<z.ZodObject<Shape>>) => string | null;
  /** Default: the members of `references`. */
  private_members?: readonly (keyof Shape & string)[];
  addresses?: readonly (keyof Shape & string)[];
}

function checked<Shape extends z.core.$ZodShape>(shape: Shape, check: Options<Shape>['check']) {
  const config = z.strictObject(shape);
  if (check === undefined) return config;
  return config.superRefine((value, context) => {
    const message = check(value as z.output<z.ZodObject<Shape>>);
    if (message !== null) context.addIssue({ code: 'custom', message });
  });
}

const declared =
  (family: Family) =>
  <const Name extends string, const Shape extends z.core.$ZodShape>(
    name: Name,
    { summary, config, check, references = {}, private_members = [], addresses = [] }: Options<Shape>,
  ) => ({
    type: `${family}:${name}` as const,
    ...{ family, summary, config: checked((config ?? {}) as Shape, check), outputs: OUTPUTS[family] },
    references: references as Readonly<Record<string, ReferenceKind>>,
    private_members: [...new Set([...Object.keys(references), ...private_members, ...addresses])],
    addresses,
  });

export const trigger = declared('trigger');
export const condition = declared('condition');
export const action = declared('action');
