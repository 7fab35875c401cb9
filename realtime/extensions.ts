import { extensionOwner, permission } from '../kernel/channel';
import { UUID } from '../kernel/uuid';
import { channel, ofBoundToken } from './runtime/family';

/** Changes of what one install of an extension has stored. A token of an install reads its own and no other (c16). */
export const storage = channel({
  pattern: 'ext-storage:<install_id>',
  ids: { install_id: UUID },
  owner: ofBoundToken('ext-storage'),
  gate: permission('extension-store:read', 'extension'),
  flag: 'feature:extensions',
});

/** What the bot modules of an account's extensions log. */
export const installLogs = channel({
  pattern: 'ext-install-logs:<account_id>',
  gate: permission('bot-modules:read'),
  flag: 'feature:bot_module_extensions',
});

/** What an extension logs, for those who develop it. */
export const logs = channel({
  pattern: 'ext-logs:<extension_id>',
  ids: { extension_id: UUID },
  gate: extensionOwner,
  flag: 'feature:extension_development',
});
