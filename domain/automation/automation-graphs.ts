import { z } from 'zod';
import { wait } from './nodes/actions';
import type { NodeType, ReferenceKind } from './nodes/node-type';
import { NODE_TYPES } from './node-types';
import { webhookUrlProblem } from './webhooks';

/** Nodes of a graph. */
export const MAX_NODES = 200;
/** Bytes of a graph's JSON. */
export const MAX_GRAPH_BYTES = 64 * 1024;

export const GraphNode = z
  .object({
    id: z.uuid(),
    type: z.string().max(100),
    config: z.record(z.string(), z.unknown()).meta({ graphql: 'JSON' }),
    x: z.number().optional(),
    y: z.number().optional(),
  })
  .meta({ id: 'AutomationNode' });
export type GraphNode = z.output<typeof GraphNode>;

export const GraphEdge = z
  .object({ from: z.uuid(), to: z.uuid(), output: z.string().max(50) })
  .meta({ id: 'AutomationEdge' });
export type GraphEdge = z.output<typeof GraphEdge>;

export interface Graph {
  nodes: readonly GraphNode[];
  edges: readonly GraphEdge[];
}
export const EMPTY_GRAPH: Graph = { nodes: [], edges: [] };

/** Edges with their outputs; the default is the first one of the node at which an edge begins. */
export function withOutputs<Edge extends { from: string; to: string; output?: string | null | undefined }>(
  nodes: readonly Pick<GraphNode, 'id' | 'type'>[],
  edges: readonly Edge[],
): GraphEdge[] {
  const types = new Map(nodes.map(({ id, type }) => [id, NODE_TYPES.get(type)]));
  return edges.map(({ from, to, output }) => ({ from, to, output: output ?? types.get(from)?.outputs[0] ?? '' }));
}

/** Problem of a graph, in words that name the id of the node. */
export type GraphProblem = string;

export interface CheckOptions {
  /** Accepts nodes without the members that exports leave out. */
  may_lack?: boolean;
  /** Accepts addresses of this machine and of private networks. */
  allow_loopback?: boolean;
}

/** Problem of the size of a graph; null of a valid one. */
export function sizeProblem({ nodes, edges }: Graph): GraphProblem | null {
  if (nodes.length > MAX_NODES) return `a graph has at most ${MAX_NODES} nodes`;
  if (Buffer.byteLength(JSON.stringify({ nodes, edges })) > MAX_GRAPH_BYTES)
    return `a graph has at most ${MAX_GRAPH_BYTES / 1024} KiB of JSON`;
  return null;
}

/** First problem of a graph; null of a valid one. Source: spec extra-facts §16. */
export function graphProblem(
  graph: Graph,
  { may_lack = false, allow_loopback = false }: CheckOptions = {},
): GraphProblem | null {
  const { nodes, edges } = graph;
  const size_problem = sizeProblem(graph);
  if (size_problem !== null) return size_problem;
  const types = new Map<string, NodeType>();
  for (const node of nodes) {
    if (types.has(node.id)) return `node ${node.id}: the id is repeated`;
    const type = NODE_TYPES.get(node.type);
    if (type === undefined) return `node ${node.id}: there is no type ${node.type}`;
    const problem = configProblem(node.config, type, may_lack) ?? addressProblem(type, node.config, allow_loopback);
    if (problem !== null) return `node ${node.id}: ${problem}`;
    types.set(node.id, type);
  }
  for (const { from, to, output } of edges) {
    const [source, target] = [types.get(from), types.get(to)];
    if (source === undefined) return `node ${from}: an edge begins at a node that is not there`;
    if (target === undefined) return `node ${to}: an edge leads to a node that is not there`;
    if (!source.outputs.includes(output)) return `node ${from}: there is no output ${output}`;
    if (target.family === 'trigger') return `node ${to}: no edge leads into a trigger`;
  }
  return unreached(graph, types) ?? cycle(graph);
}

/** Problem of an address that a config calls; null without one. */
export function addressProblem(
  { addresses }: NodeType,
  config: Readonly<Record<string, unknown>>,
  allow_loopback: boolean,
): GraphProblem | null {
  for (const member of addresses) {
    const address = config[member];
    const problem = typeof address === 'string' ? webhookUrlProblem(address, allow_loopback) : null;
    if (problem !== null) return `config.${member}: ${problem}`;
  }
  return null;
}

/** Problem of the config of a node of this type; null of a valid one. */
export function configProblem(config: unknown, type: NodeType, may_lack = false): GraphProblem | null {
  const { success, error } = (may_lack ? lacking(type) : type.config).safeParse(config);
  if (success) return null;
  const [issue] = error.issues;
  const { path, message } = issue!;
  return path.length === 0 ? `config: ${message}` : `config.${path.join('.')}: ${message}`;
}

/** The config's schema without the members that exports leave out being required. */
const lacking = ({ config, private_members }: NodeType): z.ZodType =>
  private_members.length === 0
    ? config
    : z.strictObject(
        Object.fromEntries(
          Object.entries(config.shape).map(([name, member]) => [
            name,
            private_members.includes(name) ? z.optional(member) : member,
          ]),
        ),
      );

/** Nodes whose configs lack members that they need. */
export const incompleteNodes = ({ nodes }: Graph): string[] =>
  nodes.flatMap(({ id, type, config }) => {
    const declared = NODE_TYPES.get(type);
    return declared !== undefined && configProblem(config, declared) === null ? [] : [id];
  });

const outgoing = ({ edges }: Graph): Map<string, string[]> => {
  const next = new Map<string, string[]>();
  for (const { from, to } of edges) next.set(from, [...(next.get(from) ?? []), to]);
  return next;
};

function unreached(graph: Graph, types: ReadonlyMap<string, NodeType>): GraphProblem | null {
  const next = outgoing(graph);
  const open = graph.nodes.filter(({ id }) => types.get(id)!.family === 'trigger').map(({ id }) => id);
  const reached = new Set(open);
  while (open.length > 0)
    for (const id of next.get(open.pop()!) ?? [])
      if (!reached.has(id)) {
        reached.add(id);
        open.push(id);
      }
  const lost = graph.nodes.find(({ id }) => !reached.has(id));
  return lost === undefined ? null : `node ${lost.id}: no trigger reaches it`;
}

/** A cycle without a `wait`: it would never rest. */
function cycle({ nodes, edges }: Graph): GraphProblem | null {
  const waits = new Set(nodes.filter(({ type }) => type === wait.type).map(({ id }) => id));
  const inner = edges.filter(({ from, to }) => !waits.has(from) && !waits.has(to));
  const next = outgoing({ nodes, edges: inner });
  const entering = new Map(nodes.map(({ id }) => [id, 0]));
  for (const { to } of inner) entering.set(to, entering.get(to)! + 1);
  const free = nodes.filter(({ id }) => entering.get(id) === 0).map(({ id }) => id);
  const left = new Set(nodes.map(({ id }) => id));
  while (free.length > 0) {
    const id = free.pop()!;
    left.delete(id);
    for (const to of next.get(id) ?? []) {
      const count = entering.get(to)! - 1;
      entering.set(to, count);
      if (count === 0) free.push(to);
    }
  }
  const [first] = left;
  return first === undefined ? null : `node ${first}: a cycle has no wait`;
}

/** A thing of the account that a node's config names. */
export interface Reference {
  node_id: string;
  /** Of the config. */
  member: string;
  kind: ReferenceKind;
  id: string;
  config: Readonly<Record<string, unknown>>;
}

/** The things of the account that a graph names. */
export const referencesOf = ({ nodes }: Graph): Reference[] =>
  nodes.flatMap(({ id: node_id, type, config }) =>
    Object.entries(NODE_TYPES.get(type)?.references ?? {}).flatMap(([member, kind]) => {
      const id = config[member];
      return typeof id === 'string' ? [{ node_id, member, kind, id, config }] : [];
    }),
  );
