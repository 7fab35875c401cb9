import type { ChatMessage } from '../chat/chat-messages';

/** Roles in a chat, weakest first; a role includes those before it. Source: spec extra-facts §14. */
export const BOT_ROLES = ['everyone', 'follower', 'subscriber', 'vip', 'moderator', 'broadcaster'] as const;
export type BotRole = (typeof BOT_ROLES)[number];

export const isWeaker = (role: BotRole, than: BotRole): boolean => BOT_ROLES.indexOf(role) < BOT_ROLES.indexOf(than);

export const strongerRole = (one: BotRole, other: BotRole): BotRole => (isWeaker(one, other) ? other : one);

/** The role that a message itself shows; followers look like everyone. */
export function shownRole({
  roles,
  author,
  channel_id,
}: Pick<ChatMessage, 'roles' | 'author' | 'channel_id'>): BotRole {
  if (author?.id === channel_id || roles.includes('broadcaster')) return 'broadcaster';
  if (roles.includes('moderator')) return 'moderator';
  if (roles.includes('vip')) return 'vip';
  return roles.includes('subscriber') || roles.includes('founder') ? 'subscriber' : 'everyone';
}
