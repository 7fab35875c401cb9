import * as actions from '../../../domain/automation/nodes/actions';
import * as conditions from '../../../domain/automation/nodes/conditions';
import * as variables from '../../../domain/automation/nodes/variables';
import * as webhooks from '../../../domain/automation/nodes/webhooks';
import { sendChatMessage } from './chat-actions';
import * as deciding from './conditions';
import { done, type Executor } from './executor';
import { emitEvent, runAutomation } from './run-actions';
import { postToChannel } from './discord-actions';
import { moderateAuthor, shoutOutUser } from './person-actions';
import { playSound, setLayer } from './studio-actions';
import { postWebhook } from './webhook-actions';
import { addAmount, writeVariable } from './variable-actions';

const plain: Executor = { input: ({ config }) => ({ ...config }), run: async () => done };

/** Executors of actions and conditions, by the types of their nodes. */
export const EXECUTORS: ReadonlyMap<string, Executor> = new Map<string, Executor>([
  [actions.sendChatMessage.type, sendChatMessage],
  [actions.sendDiscordMessage.type, postToChannel],
  [actions.shoutOut.type, shoutOutUser],
  [actions.moderate.type, moderateAuthor],
  [actions.playSound.type, playSound],
  [actions.setLayer.type, setLayer],
  [actions.emitEvent.type, emitEvent],
  [actions.runAutomation.type, runAutomation],
  [webhooks.sendWebhook.type, postWebhook],
  [variables.setVariable.type, writeVariable],
  [variables.addToVariable.type, addAmount],
  [conditions.compare.type, deciding.compare],
  [conditions.all.type, deciding.all],
  [conditions.any.type, deciding.any],
  [conditions.not.type, deciding.not],
  [conditions.cooldown.type, deciding.cooldown],
  [conditions.chance.type, deciding.chance],
  [conditions.role.type, deciding.role],
  [conditions.platform.type, deciding.platform],
  [conditions.live.type, deciding.live],
  // Its job runs when the wait ends.
  [actions.wait.type, plain],
]);
