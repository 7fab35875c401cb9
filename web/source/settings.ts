/** Reads settings of a layer, whose types the server has checked. */
export const textOf = (config: Record<string, unknown>, name: string, usual: string): string =>
  typeof config[name] === 'string' ? config[name] : usual;
export const numberOf = (config: Record<string, unknown>, name: string, usual: number): number =>
  typeof config[name] === 'number' ? config[name] : usual;

const fonts = new Set<string>();
/** Families whose style sheets were asked for, at most this many. */
const MAX_FONTS = 50;

/** Sets the type face of an element, and loads the family from this installation. */
export function typeFace(element: HTMLElement, config: Record<string, unknown>): void {
  const family = textOf(config, 'font_family', 'Inter');
  element.style.fontFamily = `${JSON.stringify(family)}, sans-serif`;
  element.style.fontSize = `${numberOf(config, 'font_size', 24)}px`;
  element.style.color = textOf(config, 'text_color', '#ffffff');
  if (fonts.has(family) || fonts.size >= MAX_FONTS) return;
  fonts.add(family);
  const sheet = document.createElement('link');
  sheet.rel = 'stylesheet';
  sheet.href = `/v1/fonts/${encodeURIComponent(family)}/css`;
  document.head.append(sheet);
}

/** Replaces `{{name}}` by its value; a name without a value is left out. */
export const filled = (template: string, values: Readonly<Record<string, unknown>>): string =>
  template.replace(/\{\{\s*(\w+)\s*\}\}/g, (_all, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : null;
    return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  });
