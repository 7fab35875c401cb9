import type { Services } from '../../app/services';
import type { Platform } from '../../domain/common/vendors';
import { DomainError } from '../../kernel/errors';
import { type ChannelTools, type ChatLogin, ChatRefused } from '../../vendors/chat/port';
import { readGrant } from '../connections/connection-grants';
import { ownChannel } from '../connections/own-channel';
import { failureOf } from './moderate-chat';
import { connectionSpeaker, type SpeakerDeps } from './speakers';

/** Call of a tool; returns the platform's id of what it made, else null. */
export type ToolCall = (tools: ChannelTools, by: ChatLogin) => Promise<string | null>;

export type ToolResult =
  { success: true; id: string | null } | { success: false; details: string; outcome_unknown: boolean };

const RECONNECT = { success: false, details: 'Connect the channel again to use this', outcome_unknown: false } as const;

/**
 * Uses a tool of an account's channel by the connection of the channel itself. `missing` is the reason that is thrown
 * when the platform does not know the id that the call names.
 * @throws DomainError UNSUPPORTED_TOOL, CHANNEL_NOT_CONNECTED, and `missing`
 */
export async function useTool(
  services: SpeakerDeps & Pick<Services, 'chat'>,
  { account_id, platform, missing }: { account_id: string; platform: Platform; missing?: string },
  call: ToolCall,
): Promise<ToolResult> {
  const tools = services.chat.get(platform)!.tools;
  if (tools === undefined) throw new DomainError('UNSUPPORTED_TOOL', { platform });
  const channel = await ownChannel(services.db, account_id, platform);
  if (channel === null) throw new DomainError('CHANNEL_NOT_CONNECTED');
  const grant = await readGrant(services, channel.connection_id);
  if (grant === null || grant.dead || channel.reconnect_required) return RECONNECT;
  try {
    const id = await connectionSpeaker(services, grant).speak((by) => call(tools, by));
    return { success: true, id };
  } catch (error) {
    if (missing !== undefined && error instanceof ChatRefused && error.status === 404) throw new DomainError(missing);
    return failureOf(error);
  }
}
