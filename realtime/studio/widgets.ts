import { z } from 'zod';
import { boundToken } from '../../kernel/channel';
import { channel, ofBoundToken } from '../runtime/channel/family';

export const widget = channel({
  pattern: 'widget:<widget_instance_id>',
  summary: 'What one widget shows; only its own token listens.',
  carries: { 'widget:update': { summary: 'It shows something else now.', data: z.looseObject({}) } },
  owner: ofBoundToken('widget'),
  gate: boundToken('widget'),
  flag: 'feature:widgets',
});
