import { z } from 'zod';
import { type Graph, GraphEdge, GraphNode, withOutputs } from './automation-graphs';
import { SECOND_RUNS } from './automations';
import { NODE_TYPES } from './node-types';

export const DOCUMENT_FORMAT = 'lumio:automation';
export const DOCUMENT_VERSION = 1;

const id = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,50}$/, 'ids of nodes have 1 to 50 letters, digits, - or _')
  .describe('Of this document alone');

/** An automation that leaves its account: without ids, secrets and addresses. */
export const AutomationDocument = z
  .object({
    format: z.literal(DOCUMENT_FORMAT),
    version: z.literal(DOCUMENT_VERSION),
    name: z.string(),
    description: z.string().nullable(),
    second_run: z.enum(SECOND_RUNS),
    nodes: z.array(z.object({ ...GraphNode.shape, id }).meta({ id: 'AutomationDocumentNode' })),
    edges: z.array(z.object({ ...GraphEdge.shape, from: id, to: id }).meta({ id: 'AutomationDocumentEdge' })),
  })
  .meta({ id: 'AutomationDocument' });
export type AutomationDocument = z.output<typeof AutomationDocument>;

type Exported = Pick<AutomationDocument, 'name' | 'description' | 'second_run'> & Graph;

/** The document of an automation. Its nodes are numbered. */
export function documentOf({ name, description, second_run, nodes, edges }: Exported): AutomationDocument {
  const local = new Map(nodes.map((node, at) => [node.id, String(at + 1)]));
  return {
    ...{ format: DOCUMENT_FORMAT, version: DOCUMENT_VERSION, name, description, second_run },
    nodes: nodes.map((node) => ({ ...node, id: local.get(node.id)!, config: publicConfig(node) })),
    edges: edges.map(({ from, to, output }) => ({ from: local.get(from)!, to: local.get(to)!, output })),
  };
}

function publicConfig({ type, config }: Graph['nodes'][number]): Record<string, unknown> {
  const left_out = new Set(NODE_TYPES.get(type)?.private_members);
  return Object.fromEntries(Object.entries(config).filter(([member]) => !left_out.has(member)));
}

/** A graph whose local ids were replaced. */
export function withIds({ nodes, edges }: Graph, idOf: (local: string) => string): Graph {
  return {
    nodes: nodes.map((node) => ({ ...node, id: idOf(node.id) })),
    edges: edges.map(({ from, to, output }) => ({ from: idOf(from), to: idOf(to), output })),
  };
}

export const DocumentNodeInput = z
  .object({ ...GraphNode.shape, id, x: z.number().nullish(), y: z.number().nullish() })
  .meta({ id: 'AutomationDocumentNodeInput' });
export const DocumentEdgeInput = z
  .object({ from: id, to: id, output: z.string().max(50).nullish().describe('Default: the first of the node') })
  .meta({ id: 'AutomationDocumentEdgeInput' });

/** The graph of a document, with the outputs of all edges. */
export function documentGraph(
  given_nodes: readonly z.output<typeof DocumentNodeInput>[],
  given_edges: readonly z.output<typeof DocumentEdgeInput>[],
): Graph {
  const nodes = given_nodes.map(({ x, y, ...node }) => ({
    ...node,
    ...(typeof x === 'number' && { x }),
    ...(typeof y === 'number' && { y }),
  }));
  return { nodes, edges: withOutputs(nodes, given_edges) };
}
