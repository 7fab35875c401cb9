import { z } from 'zod';
import { environmentName } from '../../kernel/settings/error';
import { SettingsSchema } from '../../kernel/settings/settings';

/** A part of the schema's JSON Schema: a section with properties, or a setting. */
interface Part {
  properties?: Record<string, Part>;
  title?: string;
  description?: string;
  unset?: string;
  default?: unknown;
  enum?: readonly string[];
  items?: Part;
  minimum?: number;
  maximum?: number;
}

/** A row of the page. */
export interface SettingRow {
  name: string;
  /** Default as the environment would have it, or a description of it. */
  unset: string;
  meaning: string;
}

/** A table of the page, below its heading. */
export interface SettingTable {
  title: string;
  description: string | null;
  rows: SettingRow[];
}

/** Every setting, in the tables of docs/operating/settings.md; a table collects the sections of one title. */
export function settingTables(): SettingTable[] {
  const schema = z.toJSONSchema(SettingsSchema, {
    io: 'input',
    unrepresentable: 'any',
    // zod leaves out the default of a setting that is transformed.
    override({ zodSchema: { _zod: zod }, jsonSchema }) {
      if (zod.def.type === 'default') jsonSchema.default = zod.def.defaultValue as never;
    },
  }) as Part;
  const tables = new Map<string, SettingTable>();
  for (const [name, part] of Object.entries(schema.properties!)) {
    const { title = name, description = null } = part.properties ? part : { title: 'Process' };
    const table = tables.get(title) ?? { title, description, rows: [] };
    table.rows.push(...rowsOf([name], part));
    tables.set(title, table);
  }
  return [...tables.values()];
}

/** docs/operating/settings.md: every setting with its default and its meaning, from the schema of the settings. */
export function settingsPage(): string {
  return `# Settings

\`npm run documents\` writes this page from \`kernel/settings/settings.ts\`.

Lumio reads settings from \`lumio.config.json\` (optional) and from the environment, which takes precedence. The key
\`webhooks.kick_secret\` is \`LUMIO_WEBHOOKS__KICK_SECRET\` in the environment, and \`"webhooks.kick_secret": …\` or
\`"webhooks": {"kick_secret": …}\` in the file. The start fails on an invalid value or an unknown \`LUMIO_*\` name, with
one line that names it. Durations are whole seconds, or a number with \`ms\`, \`s\`, \`m\`, \`h\` or \`d\`.
${settingTables().map(sectionOf).join('')}`;
}

function sectionOf({ title, description, rows }: SettingTable): string {
  const lines = rows.map(({ name, unset, meaning }) => `| \`${name}\` | ${unset} | ${meaning} |\n`);
  return `
## ${title}
${description === null ? '' : `\n${wrapped(description)}\n`}
| setting | default | meaning |
| --- | --- | --- |
${lines.join('')}`;
}

function rowsOf(path: string[], part: Part): SettingRow[] {
  if (part.properties)
    return Object.entries(part.properties).flatMap(([name, inner]) => rowsOf([...path, name], inner));
  return [{ name: environmentName(path), unset: unsetOf(part), meaning: meaningOf(part) }];
}

function unsetOf({ unset, default: value }: Part): string {
  if (unset !== undefined) return unset;
  const text = String(value ?? '');
  return text === '' ? 'none' : `\`${text}\``;
}

function meaningOf({ description = '', enum: own, items, minimum, maximum }: Part): string {
  const values = own ?? items?.enum;
  return [
    description,
    ...(values ? [`values: ${values.map((value) => `\`${value}\``).join(', ')}`] : []),
    ...(minimum !== undefined && maximum !== undefined ? [`from ${minimum} to ${maximum}`] : []),
  ].join('; ');
}

/** Breaks a paragraph into lines of the page's width. */
function wrapped(text: string): string {
  return text.replaceAll(/(.{1,120})(?: |$)/g, '$1\n').trimEnd();
}
