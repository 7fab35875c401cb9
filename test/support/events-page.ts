import { EVENT_TYPES } from '../../domain/events/event-catalogue';
import type { EventType } from '../../domain/events/types/type';
import type { Json } from '../../lib/json/json';

const TITLES: Readonly<Record<string, string>> = {
  twitch: 'Twitch',
  youtube: 'YouTube',
  kick: 'Kick',
  trovo: 'Trovo',
  spotify: 'Spotify',
  streamelements: 'StreamElements',
  discord: 'Discord',
  shopify: 'Shopify',
  chat: 'Chat, in one form for all platforms',
};
const WHERE = { event_log: 'event log', chat: 'chat', live: 'live only' } as const;

/** docs/events.md, from the catalogue. */
export function eventsPage(): string {
  const platforms = new Map<string, EventType[]>();
  for (const one of EVENT_TYPES) {
    const prefix = one.type.slice(0, one.type.indexOf(':'));
    const title = TITLES[prefix] ?? 'Pushed and kept nowhere';
    platforms.set(title, [...(platforms.get(title) ?? []), one]);
  }
  const sections = [...platforms].map(([title, types]) => section(title, types));
  return `${HEAD}\n\n${sections.join('\n\n')}\n`;
}

const HEAD = `# Events

<!-- Made by npm run events from domain/events/event-catalogue.ts. -->

Every type of events, where it is found, and the members of its \`raw\`. \`GET /v1/events/catalogue\` (\`eventCatalogue\`)
gives the same with a JSON Schema and an example of each type; \`POST /v1/events/test\` with nothing but an \`event_type\`
sends that example, as if it happened now, to who listens on \`events:<account_id>\`.

- *event log*: read with \`GET /v1/events\` and pushed on \`events:<account_id>\`; *chat*: pushed on \`chat:<account_id>\`;
  *live only*: pushed and kept nowhere.
- \`?\` may be absent, \`| null\` may be null. Vendors add members without a word: pass over what you do not know.
- On \`events:\` a \`payload\` stands in place of \`raw\`: the same without contact data, null where it is longer than
  48 KiB.
- Of a person who was erased, \`raw\` is the text \`[erased]\`.
- The log takes types beyond these (\`prefix:action\`, up to 100 characters), by \`POST /v1/events/emit\`.`;

function section(title: string, types: readonly EventType[]): string {
  const rows = types.map((one) => {
    const extensions = one.subscribable ? 'yes' : '';
    return `| \`${one.type}\` | ${one.summary} | ${WHERE[one.delivered]} | ${extensions} | ${members(one)} |`;
  });
  return [
    `## ${title}`,
    '',
    '| type | when | where | extensions | members |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n');
}

/** Every member with its path and type. */
function members({ example, optional, nullable }: EventType): string {
  const lines: string[] = [];
  const walk = (value: Json, path: string): void => {
    if (Array.isArray(value)) {
      const [first] = value;
      if (first !== undefined && first !== null && typeof first === 'object') return walk(first, `${path}[]`);
      return void lines.push(named(path, first === undefined ? 'list' : `${typeof first}[]`));
    }
    if (value === null || typeof value !== 'object') {
      return void lines.push(named(path, value === null ? 'null' : typeof value));
    }
    const entries = Object.entries(value);
    if (entries.length === 0) lines.push(named(path, 'object'));
    for (const [name, below] of entries) walk(below, path === '' ? name : `${path}.${name}`);
  };
  const named = (path: string, type: string): string => {
    const may_be_null = type === 'null' || nullable.includes(path);
    const of = type === 'null' ? '' : `: ${type}`;
    return `\`${path}${optional.includes(path) ? '?' : ''}${of}${may_be_null ? ' \\| null' : ''}\``;
  };
  walk(example as Json, '');
  return lines.join(', ');
}
