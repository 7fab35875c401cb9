import { type Graph, type GraphNode, incompleteNodes } from '../../../domain/automation/automation-graphs';
import { MAX_STEPS, type RunCause, type RunStatus } from '../../../domain/automation/automation-runs';
import { dryOutcome } from '../nodes/dry-outcomes';
import type { StepWork } from '../nodes/executor';
import { EXECUTORS } from '../nodes/executors';
import { type StepTemplates, templatesOf } from './work';

export interface DryStep {
  node_id: string;
  type: string;
  status: Extract<RunStatus, 'succeeded' | 'failed' | 'unknown'>;
  output: string | null;
  input: Record<string, unknown> | null;
  error: string | null;
}

/** An automation that is walked through from some of its triggers. */
export interface DryRun {
  account_id: string;
  automation_id: string;
  graph: Graph;
  triggers: readonly string[];
  event_id: string | null;
  cause: RunCause;
  permissions: readonly string[];
}

/** Characters of all inputs that a dry run shows. */
const MAX_SHOWN = 4 * 1024 * 1024;

type Services = Parameters<typeof templatesOf>[0];

/** Walks through a graph as a run does, without waits; nothing is changed, sent or stored. */
export async function dryRun(services: Services, dry: DryRun): Promise<{ status: RunStatus; steps: DryStep[] }> {
  const { graph, triggers } = dry;
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  const stepOf = stepsIn(services, dry);
  const steps: DryStep[] = [];
  let shown = 0;
  const open: { node: GraphNode; is_begin: boolean }[] = triggers.map((id) => ({
    node: nodes.get(id)!,
    is_begin: true,
  }));
  for (let at = 0; at < open.length; at += 1) {
    const { node, is_begin } = open[at]!;
    if (steps.length >= MAX_STEPS || shown > MAX_SHOWN) return { status: 'failed', steps };
    const step = is_begin ? begun(node) : await stepOf(node);
    steps.push(step);
    shown += JSON.stringify(step.input).length;
    const after = graph.edges.filter(({ from, output }) => from === node.id && output === (step.output ?? 'failed'));
    if (step.status !== 'succeeded' && after.length === 0) return { status: step.status, steps };
    open.push(...after.map(({ to }) => ({ node: nodes.get(to)!, is_begin: false })));
  }
  return { status: 'succeeded', steps };
}

const begun = ({ id, type }: GraphNode): DryStep => ({
  ...{ node_id: id, type, status: 'succeeded', output: 'next', input: null, error: null },
});

/** Carries out steps; the values of each node are read once. */
function stepsIn(services: Services, dry: DryRun): (node: GraphNode) => Promise<DryStep> {
  const { account_id, automation_id, permissions, event_id, cause, graph } = dry;
  const incomplete = new Set(incompleteNodes(graph));
  const templates = new Map<string, StepTemplates>();
  return async ({ id: node_id, type, config }) => {
    const of = { node_id, type };
    const executor = EXECUTORS.get(type);
    if (incomplete.has(node_id)) return { ...of, status: 'failed', output: null, input: null, error: 'incomplete' };
    if (executor === undefined) return { ...of, status: 'failed', output: null, input: null, error: 'not_available' };
    const known = templates.get(node_id) ?? (await templatesOf(services, { account_id, permissions }, cause, config));
    templates.set(node_id, known);
    const work: StepWork = {
      ...{ account_id, automation_id, run_id: automation_id, step_id: node_id, node_id, depth: 0, persons: [] },
      ...{
        permissions,
        event_id,
        cause,
        config,
        expand: known.expand,
        expires_ms: Number.POSITIVE_INFINITY,
        window_ms: 0,
      },
    };
    const input = known.inputOf(() => executor.input(work));
    if (input === null) return { ...of, status: 'failed', output: null, input: null, error: 'input_too_large' };
    const unknown_names = known.unknownNames();
    const shown = unknown_names.length === 0 ? input : { ...input, unknown_names };
    const outcome = await dryOutcome(type, work, input, services.db);
    if (outcome.status !== 'succeeded') return { ...of, ...outcome, output: null, input: shown };
    const { output } = outcome;
    if (typeof output !== 'string') throw new Error(`${type}: a dry step decides without a transaction`);
    return { ...of, status: 'succeeded', output, input: shown, error: null };
  };
}
