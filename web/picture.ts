import { element } from './dom';

/** A picture, and its word where there is no address or the picture does not load. */
export function picture(look: 'badge' | 'emote', url: string | null, word: string): HTMLElement {
  const named = element('span', look, word);
  if (typeof url !== 'string' || !url.startsWith('https:')) return named;
  const image = document.createElement('img');
  image.className = look;
  image.alt = word;
  image.title = word;
  image.referrerPolicy = 'no-referrer';
  image.addEventListener('error', () => image.replaceWith(named), { once: true });
  image.src = url;
  return image;
}
