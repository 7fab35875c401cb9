import { TEMPLATE_PLACE } from '../expansion';
import { SHORT_NAMES, TEMPLATE_GROUPS } from './members';

/** Bytes of a template. */
export const MAX_TEMPLATE_BYTES = 16 * 1024;

/** Values of a template by group; a group without data is absent. */
export type TemplateValues = Readonly<Record<string, unknown>>;

/** Encodes a value for its place in a text. */
export type TemplateEncoding = (value: string) => string;

/** Names of a template, each once, in the order of the text. */
export function templateNames(template: string): string[] {
  const names = [...template.matchAll(TEMPLATE_PLACE)].flatMap(([, , name]) => name ?? []);
  return [...new Set(names)];
}

/** Group of a name. */
export function groupOf(name: string): string {
  const [first] = name.split('.') as [string];
  return (Object.hasOwn(SHORT_NAMES, first) ? SHORT_NAMES[first]! : first).split('.')[0]!;
}

/** Permissions that a manual run needs for all values of a template, sorted. */
export function templatePermissions(template: string): string[] {
  const found = templateNames(template).flatMap((name) => TEMPLATE_GROUPS.get(groupOf(name))?.permission ?? []);
  return [...new Set(found)].sort();
}

/** Groups that a manual run of a user with these permissions reads. */
export const readableGroups = (permissions: ReadonlySet<string>): string[] =>
  [...TEMPLATE_GROUPS].flatMap(([name, { permission }]) =>
    permission === null || permissions.has(permission) ? name : [],
  );

/** Text without control characters. */
export const asPlainText: TemplateEncoding = (value) => value.replace(/\p{Cc}+/gu, ' ');
/** Part of an address. */
export const asUrlPart: TemplateEncoding = (value) => encodeURIComponent(value.replace(/\p{Surrogate}/gu, '\ufffd'));
/** Inner part of a JSON string. */
export const asJsonString: TemplateEncoding = (value) => JSON.stringify(value).slice(1, -1);

/**
 * Replaces the places of a template. Values are not expanded again. Unknown names are empty, and returned once each.
 * @param pick returns one of the number of choices, from 0 on
 */
export function expandTemplate(
  template: string,
  values: TemplateValues,
  encode: TemplateEncoding,
  pick: (choices: number) => number,
): { text: string; unknown: string[] } {
  const unknown = new Set<string>();
  const text = template.replace(TEMPLATE_PLACE, (_place, choices: string | undefined, name: string | undefined) => {
    if (choices !== undefined) {
      const all = choices.split(',');
      return encode(all[pick(all.length)]!.trim());
    }
    const value = valueAt(values, name!);
    if (value === undefined) unknown.add(name!);
    return encode(textOf(value));
  });
  return { text, unknown: [...unknown] };
}

/** Value of a name; undefined of an unknown one. A group is no value by itself. */
export function valueAt(values: TemplateValues, name: string): unknown {
  const [first, ...rest] = name.split('.') as [string, ...string[]];
  const is_short = Object.hasOwn(SHORT_NAMES, first) && (rest.length === 0 || first === 'var');
  const path = is_short ? [...SHORT_NAMES[first]!.split('.'), ...rest] : [first, ...rest];
  let value: unknown = values;
  for (const member of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, member)) return undefined;
    // The length of a list is no member of the data.
    if (Array.isArray(value) && !/^\d+$/.test(member)) return undefined;
    value = (value as Record<string, unknown>)[member];
  }
  return path.length === 1 && typeof value === 'object' ? undefined : value;
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
