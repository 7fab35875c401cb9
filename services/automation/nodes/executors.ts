import * as actions from '../../../domain/automation/nodes/actions';
import { sendChatMessage } from './chat-actions';
import { done, type Executor } from './executor';

const plain: Executor = { input: ({ config }) => ({ ...config }), run: async () => done };

/** Executors of actions and conditions, by the types of their nodes. */
export const EXECUTORS: ReadonlyMap<string, Executor> = new Map<string, Executor>([
  [actions.sendChatMessage.type, sendChatMessage],
  // Its job runs when the wait ends.
  [actions.wait.type, plain],
]);
