import * as actions from './nodes/actions';
import * as conditions from './nodes/conditions';
import type { NodeType } from './nodes/node-type';
import * as schedules from './nodes/schedules';
import * as triggers from './nodes/triggers';
import * as variables from './nodes/variables';
import * as webhooks from './nodes/webhooks';

const isNodeType = (value: unknown): value is NodeType =>
  typeof value === 'object' && value !== null && 'family' in value && 'outputs' in value;

/** Types of nodes by their names. A file of `nodes/` is registered here; extensions register theirs at the start. */
export const NODE_TYPES: ReadonlyMap<string, NodeType> = new Map(
  [triggers, schedules, conditions, actions, variables, webhooks]
    .flatMap((file) => Object.values(file) as unknown[])
    .filter(isNodeType)
    .map((one) => [one.type, one]),
);
