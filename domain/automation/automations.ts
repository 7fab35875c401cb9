import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';
import { unreachable } from '../common/unreachable';
import { EMPTY_GRAPH, type Graph, incompleteNodes } from './automation-graphs';

/** Treatment of a run that begins while another one of the automation is under way. */
export const SECOND_RUNS = ['parallel', 'queue', 'restart', 'skip'] as const;

const ids = { automation_id: z.uuid(), account_id: z.uuid() };
const chosenMembers = {
  name: z.string(),
  description: z.string().nullable(),
  enabled: z.boolean(),
  second_run: z.enum(SECOND_RUNS),
};
const graph = z.string().describe('JSON text of `nodes` and `edges`');
const audit = { omit: ['graph'] } as const;

/** Automations: graphs of triggers, conditions and actions. Source: spec extra-facts §16. */
export const AUTOMATION_EVENTS = events({
  'automation:created': event({ ...ids, ...chosenMembers, graph, created_at: instant() }, { audit }),
  'automation:updated': event({
    ...ids,
    ...chosenMembers,
    disabled_reason: z.string().nullable(),
    updated_at: instant(),
  }),
  'automation:graph_replaced': event({ ...ids, revision: z.int32(), graph, replaced_at: instant() }, { audit }),
  'automation:deleted': event({ ...ids, deleted_at: instant() }),
});
export type AutomationEvent = EventOf<typeof AUTOMATION_EVENTS>;

const Chosen = z.object(chosenMembers);
type Chosen = z.output<typeof Chosen>;
type Changes = { [Member in keyof Chosen]?: Chosen[Member] | undefined };

export type AutomationCommand = { now: string } & (
  | ({ type: 'automation:create'; automation_id: string; account_id: string; graph?: Graph } & Chosen)
  | { type: 'automation:update'; changes: Changes }
  | { type: 'automation:disable'; reason: string }
  | { type: 'automation:replace_graph'; revision: number; graph: Graph }
  | { type: 'automation:delete' }
);

export interface Automation extends Chosen {
  status: 'none' | 'active' | 'deleted';
  automation_id: string;
  account_id: string;
  revision: number;
  disabled_reason: string | null;
  graph: Graph;
  created_at: string;
  updated_at: string;
}

export const automationStream = (automation_id: string): string => `automation-${automation_id}`;
/** Owner of the jobs and schedules of an automation. */
export const automationOwner = (automation_id: string): string => `automation:${automation_id}`;
/** Channel of the messages about an account's automations. */
export const automationsChannel = (account_id: string): string => `automations:${account_id}`;

const initial: Automation = {
  ...{ status: 'none', automation_id: '', account_id: '', revision: 0, disabled_reason: null, graph: EMPTY_GRAPH },
  ...{ name: '', description: null, enabled: false, second_run: 'parallel', created_at: '', updated_at: '' },
};

/** @throws DomainError AUTOMATION_INCOMPLETE where a node lacks members that it needs */
function requireComplete({ enabled }: Chosen, of: Graph): void {
  const nodes = enabled ? incompleteNodes(of) : [];
  if (nodes.length > 0) throw new DomainError('AUTOMATION_INCOMPLETE', { nodes: nodes.join(', ') });
}

/** A graph as events and rows keep it. */
export const graphText = ({ nodes, edges }: Graph): string => JSON.stringify({ nodes, edges });

export const automation: Decider<Automation, AutomationCommand, AutomationEvent> = {
  initial,
  decide(state, command) {
    const { now } = command;
    if (command.type === 'automation:create') {
      if (state.status !== 'none') return [];
      const { type: _type, now: _now, graph: made = EMPTY_GRAPH, ...chosen } = command;
      requireComplete(chosen, made);
      return [{ type: 'automation:created', ...chosen, graph: graphText(made), created_at: now }];
    }
    if (state.status !== 'active') throw new DomainError('AUTOMATION_NOT_FOUND');
    const of = { automation_id: state.automation_id, account_id: state.account_id };
    switch (command.type) {
      case 'automation:update': {
        const before = Chosen.parse(state);
        const changed = Object.entries(command.changes).filter(([, value]) => value !== undefined);
        const after: Chosen = { ...before, ...Object.fromEntries(changed) };
        if (JSON.stringify(after) === JSON.stringify(before)) return [];
        if (!before.enabled) requireComplete(after, state.graph);
        const disabled_reason = after.enabled ? null : state.disabled_reason;
        return [{ type: 'automation:updated', ...of, ...after, disabled_reason, updated_at: now }];
      }
      case 'automation:disable': {
        if (!state.enabled) return [];
        const disabled = { ...Chosen.parse(state), enabled: false, disabled_reason: command.reason };
        return [{ type: 'automation:updated', ...of, ...disabled, updated_at: now }];
      }
      case 'automation:replace_graph': {
        if (command.revision !== state.revision)
          throw new DomainError('STALE_REVISION', { revision: command.revision, current: state.revision });
        const { graph: next, revision } = command;
        const replaced = { ...of, revision: revision + 1, graph: graphText(next) };
        return [{ type: 'automation:graph_replaced', ...replaced, replaced_at: now }];
      }
      case 'automation:delete':
        return [{ type: 'automation:deleted', ...of, deleted_at: now }];
      default:
        return unreachable(command);
    }
  },
  evolve(state, event) {
    switch (event.type) {
      case 'automation:created': {
        const { type: _type, graph: made, ...chosen } = event;
        return {
          ...state,
          ...chosen,
          status: 'active',
          graph: JSON.parse(made) as Graph,
          updated_at: event.created_at,
        };
      }
      case 'automation:updated': {
        const { type: _type, ...changed } = event;
        return { ...state, ...changed };
      }
      case 'automation:graph_replaced': {
        const { revision, graph: next, replaced_at } = event;
        return { ...state, revision, graph: JSON.parse(next) as Graph, updated_at: replaced_at };
      }
      case 'automation:deleted':
        return { ...state, status: 'deleted' };
      default:
        return unreachable(event);
    }
  },
};
