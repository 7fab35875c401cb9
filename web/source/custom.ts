import { textOf } from './settings';
import type { Drawing } from './types';

/** Code of a custom layer. */
export interface CustomCode {
  html: string;
  css: string;
  js: string;
}

const FRAME = '/overlay-frame';
/** Messages that wait until the frame is there. */
const MAX_WAITING = 100;
/** Address of a file of this installation. */
const FILE = /\/v1\/(?:uploads|sounds)\/([0-9a-f-]{36})\/(?:content|stream)/gi;

/**
 * Code of the account, in a frame of an origin of its own: the code has neither the page nor its token, and loads files
 * of this installation alone.
 */
export class Custom implements Drawing {
  readonly element = document.createElement('iframe');
  private code: CustomCode = { html: '', css: '', js: '' };
  private assets: Readonly<Record<string, string>> = {};
  /** Files with links that the frame began with. */
  private linked = '';
  private waiting: object[] | null = [];

  constructor() {
    this.element.className = 'custom';
    this.element.setAttribute('sandbox', 'allow-scripts');
    this.element.allow = 'autoplay';
    this.element.addEventListener('load', () => this.start());
  }

  configure(config: Record<string, unknown>): void {
    const code = { html: textOf(config, 'html', ''), css: textOf(config, 'css', ''), js: textOf(config, 'js', '') };
    const is_same = code.html === this.code.html && code.css === this.code.css && code.js === this.code.js;
    if (is_same && this.element.hasAttribute('src')) return;
    this.code = code;
    this.restart();
  }

  link(assets: Readonly<Record<string, string>>): void {
    this.assets = assets;
    if (this.linkedFiles() !== this.linked) this.restart();
    else if (this.waiting === null) this.post({ event_type: 'assets', data: assets });
  }

  take(event_type: string, data: Record<string, unknown>): void {
    this.post({ event_type, data });
  }

  private restart(): void {
    this.waiting ??= [];
    this.linked = this.linkedFiles();
    this.element.src = FRAME;
  }

  /** The frame waits for its code, at first and after each restart. */
  private start(): void {
    const { html, css, js } = this.code;
    const code: CustomCode = { html: this.withLinks(html), css: this.withLinks(css), js: this.withLinks(js) };
    const waiting = this.waiting ?? [];
    this.waiting = null;
    this.post(code);
    this.post({ event_type: 'assets', data: this.assets });
    for (const message of waiting) this.post(message);
  }

  private post(message: object): void {
    if (this.waiting === null) this.element.contentWindow?.postMessage(message, '*');
    else if (this.waiting.length < MAX_WAITING) this.waiting.push(message);
  }

  private withLinks(text: string): string {
    return text.replace(FILE, (address, id: string) => this.linkOf(id) ?? address);
  }

  private linkOf = (id: string): string | undefined =>
    Object.hasOwn(this.assets, id.toLowerCase()) ? this.assets[id.toLowerCase()] : undefined;

  /** Ids of files in the code that have links. */
  private linkedFiles(): string {
    const { html, css, js } = this.code;
    const ids = [html, css, js].flatMap((text) => [...text.matchAll(FILE)].map(([, id]) => id!));
    return ids.filter((id) => this.linkOf(id) !== undefined).join();
  }
}
