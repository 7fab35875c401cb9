import { z } from 'zod';
import { extensionOwner, permission } from '../../kernel/channel';
import { UUID } from '../../lib/hash/uuid';
import { channel, ofBoundToken } from '../runtime/channel/family';

const log = { '*': { summary: 'A line of the log.', data: z.looseObject({}) } };

/** A token of an install reads its own and no other (c16). */
export const storage = channel({
  pattern: 'ext-storage:<install_id>',
  summary: 'Changes of what one install of an extension has stored.',
  carries: {
    'storage:update': { summary: 'What is stored has changed.', data: z.looseObject({}) },
    'extension:updated': { summary: 'The extension has another version.', data: z.looseObject({}) },
  },
  ids: { install_id: UUID },
  owner: ofBoundToken('ext-storage'),
  gate: permission('extension-store:read', 'extension'),
  flag: 'feature:extensions',
});

export const installLogs = channel({
  pattern: 'ext-install-logs:<account_id>',
  summary: "What the bot modules of an account's extensions log.",
  carries: log,
  gate: permission('bot-modules:read'),
  flag: 'feature:bot_module_extensions',
});

export const logs = channel({
  pattern: 'ext-logs:<extension_id>',
  summary: 'What an extension logs, for those who develop it.',
  carries: log,
  ids: { extension_id: UUID },
  gate: extensionOwner,
  flag: 'feature:extension_development',
});
