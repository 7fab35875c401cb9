import { element } from '../dom';
import { textOf } from './settings';
import type { Drawing } from './types';

/** A picture of the account; without its file it draws nothing. */
export class Image implements Drawing {
  readonly element = element('div', 'image');
  private readonly picture = document.createElement('img');
  private upload_id = '';
  private assets: Readonly<Record<string, string>> = {};

  constructor() {
    this.picture.alt = '';
    this.picture.hidden = true;
    this.element.append(this.picture);
  }

  configure(config: Record<string, unknown>): void {
    this.upload_id = textOf(config, 'upload_id', '');
    this.picture.style.objectFit = textOf(config, 'fit', 'contain');
    this.show();
  }

  link(assets: Readonly<Record<string, string>>): void {
    this.assets = assets;
    this.show();
  }

  private show(): void {
    const url = Object.hasOwn(this.assets, this.upload_id) ? this.assets[this.upload_id] : undefined;
    this.picture.hidden = url === undefined;
    if (url === undefined) this.picture.removeAttribute('src');
    // The same file under a new link is not loaded again.
    else if (fileOf(url) !== fileOf(this.picture.getAttribute('src') ?? '')) this.picture.src = url;
  }
}

const fileOf = (url: string): string => url.split('?')[0]!;
