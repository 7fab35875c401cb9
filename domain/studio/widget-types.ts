import { z } from 'zod';
import type { JsonObject } from '../../lib/json/json';

/** A colour as settings have it. */
const HEX_COLOR = /^#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$/i;
const EventTypes = z.array(z.string().min(1).max(100)).max(100);

const alert = {
  enabled: z.boolean().optional(),
  min_amount: z.number().min(0).optional(),
  template: z.string().max(1_000).optional(),
  upload_id: z.uuid().nullable().optional(),
  sound_id: z.uuid().nullable().optional(),
  volume: z.number().min(0).max(1).optional(),
  duration_ms: z.int().min(500).max(60_000).optional(),
  animation: z.enum(['fade', 'slide', 'bounce', 'none']).optional(),
};
/** Settings of alerts by types of events; of several variations the one of the greatest reached amount counts. */
export const AlertRules = z
  .record(
    z.string().min(1).max(100),
    z.strictObject({ ...alert, variations: z.array(z.strictObject(alert)).max(50).optional() }),
  )
  .refine((rules) => Object.keys(rules).length <= 100);

/** A member of a widget's config, in the form of an extension's manifest. Source: spec extra-facts §27. */
export interface ConfigField {
  type: 'string' | 'number' | 'boolean' | 'color' | 'select' | 'list' | 'instant' | 'upload' | 'alerts' | 'code';
  label: string;
  default: string | number | boolean | readonly string[] | Readonly<Record<string, never>> | null;
  /** Of a `select`. */
  options?: readonly string[];
  /** Of a `number`. */
  min?: number;
  max?: number;
}

/** Content that widgets and layers draw. Source: spec extra-facts §8. */
export const DRAWN_TYPES = [
  ...(['chat', 'alerts', 'event_list', 'text', 'image', 'timer', 'music', 'browser_source'] as const),
] as const;
export type DrawnType = (typeof DRAWN_TYPES)[number];

/** A kind of widget that every account has. */
export interface WidgetType {
  type: DrawnType;
  slug: string;
  kind: 'widget';
  name: string;
  /** Feature flag that allows it; null: always allowed. */
  flag: string | null;
  config_schema: Readonly<Record<string, ConfigField>>;
}

const text = (label: string, value: string): ConfigField => ({ type: 'string', label, default: value });
const color = (label: string, value: string): ConfigField => ({ type: 'color', label, default: value });
const flag = (label: string, value: boolean): ConfigField => ({ type: 'boolean', label, default: value });
const number = (label: string, value: number, min: number, max: number): ConfigField => ({
  ...{ type: 'number', label, default: value },
  ...{ min, max },
});
const select = (label: string, ...options: string[]): ConfigField => ({
  ...{ type: 'select', label, default: options[0]! },
  options,
});

const TYPE_FACE: Readonly<Record<string, ConfigField>> = {
  font_family: text('Font', 'Inter'),
  font_size: number('Size of text', 24, 8, 200),
  text_color: color('Colour of text', '#ffffff'),
};

/** Slug of the widget that announces events. */
export const ALERT_BOX = 'system-alert-box';

/** The built-in widgets. Source: spec extra-facts §8; what can be set is ours. */
export const WIDGET_TYPES: readonly WidgetType[] = [
  {
    type: 'chat',
    slug: 'system-chat-box',
    kind: 'widget',
    name: 'Chat Box',
    flag: 'widget:chat_box',
    config_schema: {
      ...TYPE_FACE,
      max_lines: number('Lines at a time', 20, 1, 100),
      hide_after_seconds: number('Seconds after which a message goes; 0 never', 0, 0, 600),
      show_badges: flag('Badges', true),
    },
  },
  {
    type: 'alerts',
    slug: ALERT_BOX,
    kind: 'widget',
    name: 'Alert Box',
    flag: 'widget:alert_box',
    config_schema: {
      ...TYPE_FACE,
      alerts: { type: 'alerts', label: 'Alerts by type of event; of none: the usual ones', default: {} },
    },
  },
  {
    type: 'event_list',
    slug: 'system-event-list',
    kind: 'widget',
    name: 'Event List',
    flag: 'widget:event_list',
    config_schema: {
      ...TYPE_FACE,
      max_items: number('Events at a time', 10, 1, 50),
      event_types: { type: 'list', label: 'Types of events; none: all', default: [] },
    },
  },
  {
    type: 'text',
    slug: 'system-text',
    kind: 'widget',
    name: 'Text',
    flag: 'widget:text',
    config_schema: {
      ...TYPE_FACE,
      template: text('Text, with {{last_follower}}, {{last_tip}} and {{song}} filled in', ''),
      align: select('Alignment', 'left', 'center', 'right'),
    },
  },
  {
    type: 'image',
    slug: 'system-image',
    kind: 'widget',
    name: 'Image',
    flag: 'widget:image',
    config_schema: {
      upload_id: { type: 'upload', label: 'Picture', default: null },
      fit: select('Fit', 'contain', 'cover', 'fill'),
    },
  },
  {
    type: 'timer',
    slug: 'system-timer',
    kind: 'widget',
    name: 'Timer',
    flag: 'widget:timer',
    config_schema: {
      ...TYPE_FACE,
      mode: select('Kind', 'countdown', 'stopwatch'),
      starts_at: { type: 'instant', label: 'Start of a stopwatch', default: null },
      ends_at: { type: 'instant', label: 'End of a countdown', default: null },
    },
  },
  {
    type: 'music',
    slug: 'system-spotify-now-playing',
    kind: 'widget',
    name: 'Spotify Now Playing',
    flag: 'widget:spotify_now_playing',
    config_schema: { ...TYPE_FACE, show_cover: flag('Cover', true) },
  },
  {
    type: 'browser_source',
    slug: 'system-obs-browser-source',
    kind: 'widget',
    name: 'Browser Source',
    flag: 'widget:obs_browser_source',
    config_schema: {},
  },
];

/** A bot module that every account has; its settings are in the form of those of widgets. */
export interface BotModuleType {
  type: string;
  slug: string;
  kind: 'bot_module';
  name: string;
  flag: string;
  config_schema: Readonly<Record<string, ConfigField>>;
}

const list = (label: string): ConfigField => ({ type: 'list', label, default: [] });
const limit = (label: string, value: number | null, min: number, max: number): ConfigField => ({
  ...{ type: 'number', label, default: value },
  ...{ min, max },
});
const ACTING = {
  action: { ...select('What happens to the line', 'warn', 'delete', 'timeout', 'ban'), default: 'delete' },
  timeout_seconds: number('Seconds of a timeout', 600, 1, 1_209_600),
  warning_text: text('Answer of a warning', ''),
} as const;

/** The built-in bot modules. Source: spec extra-facts §8, §15. */
export const BOT_MODULE_TYPES: readonly BotModuleType[] = [
  module('link_protection', 'Link Protection', {
    allowed_domains: list('Domains that may be linked, with their subdomains'),
    ...ACTING,
  }),
  module('spam_protection', 'Spam Protection', {
    max_repeats: limit('Equal characters or words in a row', null, 1, 1_000),
    max_caps_percent: limit('Capital letters in percent', null, 0, 100),
    max_symbols_percent: limit('Symbols in percent', null, 0, 100),
    max_emotes: limit('Emotes', null, 0, 1_000),
    ...ACTING,
  }),
  module('word_filter', 'Word Filter', {
    words: list('Words and phrases'),
    patterns: list('Regular expressions'),
    ...ACTING,
  }),
  module('timed_messages', 'Timed Messages', {
    messages: list('Messages, sent in turn'),
    interval_seconds: number('Seconds between two messages', 600, 60, 86_400),
    min_chat_lines: limit('Lines of the chat since the last message', 0, 0, 1_000),
  }),
];

function module(type: string, name: string, config_schema: BotModuleType['config_schema']): BotModuleType {
  const slug = `system-${type.replaceAll('_', '-')}`;
  return { type, slug, kind: 'bot_module', name, flag: `bot_module:${type}`, config_schema };
}

/** Place of a layer in its overlay, in pixels; by default all of it. */
const PLACE = {
  x: number('Left edge', 0, -32_768, 32_768),
  y: number('Upper edge', 0, -32_768, 32_768),
  width: number('Width', 1920, 1, 16_384),
  height: number('Height', 1080, 1, 16_384),
};

const BY_WORD = new Map(WIDGET_TYPES.flatMap((type) => [[type.slug, type] as const, [type.type, type] as const]));
/** A type by its word or its slug. */
export const widgetType = (word: string): WidgetType | undefined => BY_WORD.get(word);

/** Members of a custom layer's config that are code. */
export const CUSTOM_CODE = ['html', 'css', 'js'] as const;
const CUSTOM: Pick<WidgetType, 'config_schema'> = {
  config_schema: Object.fromEntries(
    CUSTOM_CODE.map((name) => [name, { type: 'code', label: name.toUpperCase(), default: '' }]),
  ),
};

/** The settings of a layer of this type, which is the word of a widget's type or `custom`; undefined of another. */
export function layerSettings(type: string): Pick<WidgetType, 'config_schema'> | undefined {
  const found = type === 'custom' ? CUSTOM : WIDGET_TYPES.find((one) => one.type === type);
  return found && { config_schema: { ...found.config_schema, ...PLACE } };
}

/** JSON of a config. */
export const MAX_CONFIG_BYTES = 64 * 1024;
const MAX_TEXT = 10_000;

/** Why a config does not fit its settings, for people; null where it does. */
export function configProblem({ config_schema }: Pick<WidgetType, 'config_schema'>, config: JsonObject): string | null {
  if (Buffer.byteLength(JSON.stringify(config)) > MAX_CONFIG_BYTES)
    return `config is larger than ${MAX_CONFIG_BYTES} bytes`;
  for (const [name, value] of Object.entries(config)) {
    const field = Object.hasOwn(config_schema, name) ? config_schema[name]! : undefined;
    if (field === undefined) return `config.${name.slice(0, 100)} is not a setting of this type`;
    if (!fits(field, value))
      return `config.${name} must be ${WORDS[field.type] ?? `a ${field.type}`}${boundsOf(field)}`;
  }
  return null;
}

const WORDS: Partial<Record<ConfigField['type'], string>> = {
  code: 'a text',
  list: 'a list of at most 100 texts',
  instant: 'an RFC 3339 time or null',
  upload: 'the id of an upload or null',
  alerts: 'settings of alerts by types of events',
};

function fits({ type, options, min = -Infinity, max = Infinity }: ConfigField, value: unknown): boolean {
  switch (type) {
    case 'code':
      return typeof value === 'string';
    case 'string':
      return typeof value === 'string' && value.length <= MAX_TEXT;
    case 'color':
      return typeof value === 'string' && HEX_COLOR.test(value);
    case 'boolean':
      return typeof value === 'boolean';
    case 'number':
      return typeof value === 'number' && value >= min && value <= max;
    case 'select':
      return typeof value === 'string' && options!.includes(value);
    case 'list':
      return EventTypes.safeParse(value).success;
    case 'instant':
      return value === null || z.iso.datetime({ offset: true }).safeParse(value).success;
    case 'upload':
      return value === null || z.uuid().safeParse(value).success;
    case 'alerts':
      return AlertRules.safeParse(value).success;
  }
}

function boundsOf({ options, min, max }: ConfigField): string {
  if (options !== undefined) return ` of ${options.join(', ')}`;
  return min === undefined ? '' : ` from ${min} to ${max}`;
}

/** A config with the defaults of what it leaves out. */
export function fullConfig({ config_schema }: WidgetType, config: JsonObject): JsonObject {
  const defaults = Object.entries(config_schema).map(([name, field]) => [name, field.default]);
  return { ...Object.fromEntries(defaults), ...config } as JsonObject;
}

/** Part of a stored config that the type still has as settings. */
export const knownSettings = ({ config_schema }: WidgetType, config: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(config).filter(([name]) => Object.hasOwn(config_schema, name)));
