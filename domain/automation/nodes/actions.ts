import { z } from 'zod';
import { PLATFORMS } from '../../common/vendors';
import { action, template } from './node-type';

export const sendChatMessage = action('send_chat_message', {
  summary: 'The bot writes a line into chats.',
  config: {
    message: template,
    platforms: z
      .array(z.enum(PLATFORMS))
      .min(1)
      .max(4)
      .optional()
      .describe('Default: the platform of the cause, else all with an active bot'),
  },
});

export const sendDiscordMessage = action('send_discord_message', {
  summary: 'The bot writes into a channel of the Discord server.',
  config: { channel_id: z.string().regex(/^\d{1,20}$/, 'channel_id must be an id of Discord'), message: template },
  references: { channel_id: 'discord_channel' },
});

export const shoutOut = action('shout_out', {
  summary: 'Recommends the channel of a person.',
  config: { user: z.string().min(1).max(500).describe('Template of a name or an id') },
});

export const playSound = action('play_sound', {
  summary: 'Plays a sound on the pages of the account.',
  config: { sound_id: z.uuid(), volume: z.number().min(0).max(1).optional().describe('Default 1') },
  references: { sound_id: 'sound' },
});

export const setLayer = action('set_layer', {
  summary: 'Shows or hides a layer of an overlay.',
  config: { overlay_id: z.uuid(), layer_id: z.uuid(), visible: z.boolean() },
  references: { overlay_id: 'overlay', layer_id: 'layer' },
});

export const MODERATIONS = ['delete', 'timeout', 'ban'] as const;
export const moderate = action('moderate', {
  summary: 'Moderates the author of the cause, or the line.',
  config: {
    action: z.enum(MODERATIONS),
    timeout_seconds: z.int().min(1).max(1_209_600).optional().describe('Default 600'),
  },
});

/** Seconds of a wait. */
export const wait = action('wait', {
  summary: 'Goes on after these seconds.',
  config: { seconds: z.int().min(1).max(604_800) },
});

export const runAutomation = action('run_automation', {
  summary: 'Starts another automation at its trigger `automation`.',
  config: { automation_id: z.uuid() },
  references: { automation_id: 'automation' },
});

export const emitEvent = action('emit_event', {
  summary: "Inserts an event into the account's log.",
  config: {
    event_type: z
      .string()
      .max(100)
      .regex(/^[A-Za-z0-9_.-]+:[A-Za-z0-9_.:-]+$/, 'event_type must be prefix:action'),
    raw: z.record(z.string(), z.unknown()).describe('Texts in it are templates'),
  },
});
