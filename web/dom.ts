/** Returns the element with this id. @throws Error when the page has none */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found as T;
}

/** Creates an element with a class and content; strings become text nodes. */
export function element(tag: string, class_name = '', ...inside: (Node | string)[]): HTMLElement {
  const made = document.createElement(tag);
  if (class_name !== '') made.className = class_name;
  made.append(...inside);
  return made;
}

/** Sets a short label, styled by its status. */
export function pill(target: HTMLElement, text: string, look: 'good' | 'waiting' | 'bad'): void {
  target.textContent = text;
  target.className = `pill ${look}`;
}

/** `8 ms`, `1.2 s`. */
export const shownMs = (ms: number): string => (ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`);
