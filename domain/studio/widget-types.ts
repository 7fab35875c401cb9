import type { JsonObject } from '../../lib/json/json';

/** A member of a widget's config, in the form of an extension's manifest. Source: spec extra-facts §27. */
export interface ConfigField {
  type: 'string' | 'number' | 'boolean' | 'color' | 'select';
  label: string;
  default: string | number | boolean;
  /** Of a `select`. */
  options?: readonly string[];
  /** Of a `number`. */
  min?: number;
  max?: number;
}

/** A kind of widget that every account has. */
export interface WidgetType {
  slug: string;
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

const TYPE_FACE = {
  font_family: text('Font', 'Inter'),
  font_size: number('Size of text', 24, 8, 200),
  text_color: color('Colour of text', '#ffffff'),
};

/** The built-in widgets. Source: spec extra-facts §8; what can be set is ours. */
export const WIDGET_TYPES: readonly WidgetType[] = [
  {
    slug: 'system-chat-box',
    name: 'Chat Box',
    flag: 'widget:chat_box',
    config_schema: {
      ...TYPE_FACE,
      max_messages: number('Messages at a time', 20, 1, 100),
      hide_after_seconds: number('Seconds after which a message goes; 0 never', 0, 0, 600),
      show_badges: flag('Badges', true),
    },
  },
  {
    slug: 'system-alert-box',
    name: 'Alert Box',
    flag: null,
    config_schema: {
      ...TYPE_FACE,
      duration_seconds: number('Seconds of an alert', 5, 1, 60),
      volume: number('Volume', 0.5, 0, 1),
      animation: select('Animation', 'fade', 'slide', 'bounce', 'none'),
    },
  },
  {
    slug: 'system-event-list',
    name: 'Event List',
    flag: 'widget:event_list',
    config_schema: { ...TYPE_FACE, max_events: number('Events at a time', 10, 1, 50) },
  },
  {
    slug: 'system-text',
    name: 'Text',
    flag: null,
    config_schema: { ...TYPE_FACE, text: text('Text', ''), align: select('Alignment', 'left', 'center', 'right') },
  },
  {
    slug: 'system-image',
    name: 'Image',
    flag: null,
    config_schema: { image_url: text('Address of the picture', ''), fit: select('Fit', 'contain', 'cover', 'fill') },
  },
  {
    slug: 'system-timer',
    name: 'Timer',
    flag: null,
    config_schema: {
      ...TYPE_FACE,
      mode: select('Kind', 'countdown', 'stopwatch'),
      duration_seconds: number('Seconds of a countdown', 300, 1, 604_800),
    },
  },
  {
    slug: 'system-spotify-now-playing',
    name: 'Spotify Now Playing',
    flag: 'widget:spotify_now_playing',
    config_schema: { ...TYPE_FACE, show_cover: flag('Cover', true) },
  },
  {
    slug: 'system-obs-browser-source',
    name: 'Browser Source',
    flag: 'widget:obs_browser_source',
    config_schema: {},
  },
];

const BY_SLUG = new Map(WIDGET_TYPES.map((type) => [type.slug, type]));
export const widgetType = (slug: string): WidgetType | undefined => BY_SLUG.get(slug);

/** JSON of a widget's config. */
export const MAX_CONFIG_BYTES = 64 * 1024;
const MAX_TEXT = 10_000;

/** Why a config does not fit its type, for people; null where it does. */
export function configProblem({ config_schema }: WidgetType, config: JsonObject): string | null {
  if (Buffer.byteLength(JSON.stringify(config)) > MAX_CONFIG_BYTES)
    return `config is larger than ${MAX_CONFIG_BYTES} bytes`;
  for (const [name, value] of Object.entries(config)) {
    const field = Object.hasOwn(config_schema, name) ? config_schema[name]! : undefined;
    if (field === undefined) return `config.${name.slice(0, 100)} is not a setting of this widget`;
    if (!fits(field, value)) return `config.${name} must be a ${field.type}${boundsOf(field)}`;
  }
  return null;
}

function fits({ type, options, min = -Infinity, max = Infinity }: ConfigField, value: unknown): boolean {
  switch (type) {
    case 'string':
      return typeof value === 'string' && value.length <= MAX_TEXT;
    case 'color':
      return typeof value === 'string' && /^#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$/i.test(value);
    case 'boolean':
      return typeof value === 'boolean';
    case 'number':
      return typeof value === 'number' && value >= min && value <= max;
    case 'select':
      return typeof value === 'string' && options!.includes(value);
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
