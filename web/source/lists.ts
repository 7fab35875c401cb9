import { element } from '../dom';
import { filled, numberOf, textOf, typeFace } from './settings';
import type { DrawnEvent, Drawing, Labels, PageState } from './types';

const MAX_ITEMS = 50;

/** List of events, newest first. */
export class EventList implements Drawing {
  readonly element = element('ol', 'events');
  private most = 10;
  private types: readonly string[] = [];

  configure(config: Record<string, unknown>): void {
    typeFace(this.element, config);
    this.most = Math.min(MAX_ITEMS, numberOf(config, 'max_items', 10));
    this.types = Array.isArray(config.event_types) ? (config.event_types as string[]) : [];
    this.trim();
  }

  begin({ recent }: PageState): void {
    this.element.replaceChildren();
    this.list(recent);
  }

  list(recent: readonly DrawnEvent[]): void {
    for (const event of [...recent].reverse()) this.add(event.type, event);
  }

  take(event_type: string, data: Record<string, unknown>): void {
    if (event_type === 'event:erased') this.remove(data.id);
    else this.add(event_type, data as unknown as DrawnEvent);
  }

  private remove(id: unknown): void {
    for (const row of [...this.element.children] as HTMLElement[]) if (row.dataset.id === id) row.remove();
  }

  private add(event_type: string, event: DrawnEvent): void {
    if (this.types.length > 0 && !this.types.includes(event_type)) return;
    const rows = [...this.element.children] as HTMLElement[];
    if (event.id !== null && rows.some(({ dataset }) => dataset.id === event.id)) return;
    const action = event_type.slice(event_type.indexOf(':') + 1).replaceAll('_', ' ');
    const worth = event.amount === null ? '' : `${event.amount} ${event.currency ?? ''}`.trim();
    const parts = [event.user_name ?? '', action, worth].filter((part) => part !== '');
    const row = element('li', '', parts.join(' · '));
    row.dataset.id = event.id ?? '';
    row.dataset.at = event.created_at;
    const older = rows.find(({ dataset }) => !(Date.parse(dataset.at!) > Date.parse(event.created_at)));
    this.element.insertBefore(row, older ?? null);
    this.trim();
  }

  private trim(): void {
    while (this.element.childElementCount > this.most) this.element.lastElementChild!.remove();
  }
}

/** A text with the names of the last follower, the last tip and the song. */
export class Text implements Drawing {
  readonly element = element('p', 'text');
  private template = '';
  private labels: Labels | null = null;

  configure(config: Record<string, unknown>): void {
    typeFace(this.element, config);
    this.element.style.textAlign = textOf(config, 'align', 'left');
    this.template = textOf(config, 'template', '');
    this.show();
  }

  label(labels: Labels): void {
    this.labels = labels;
    this.show();
  }

  private show(): void {
    this.element.textContent = filled(this.template, { ...this.labels });
  }
}

/** Time up to an end, or since a start. */
export class Timer implements Drawing {
  readonly element = element('p', 'timer');
  private mode = 'countdown';
  private at = NaN;
  private readonly ticks = window.setInterval(() => this.show(), 250);

  configure(config: Record<string, unknown>): void {
    typeFace(this.element, config);
    this.mode = textOf(config, 'mode', 'countdown');
    this.at = Date.parse(textOf(config, this.mode === 'countdown' ? 'ends_at' : 'starts_at', ''));
    this.show();
  }

  close(): void {
    clearInterval(this.ticks);
  }

  private show(): void {
    const ms = this.mode === 'countdown' ? this.at - Date.now() : Date.now() - this.at;
    const seconds = Number.isNaN(ms) ? 0 : Math.max(0, Math.floor(ms / 1_000));
    const two = (value: number) => String(value).padStart(2, '0');
    const text = `${two(Math.floor(seconds / 3_600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
    if (this.element.textContent !== text) this.element.textContent = text;
  }
}

/** The song that is played. */
export class Music implements Drawing {
  readonly element = element('p', 'music');
  private readonly cover = document.createElement('img');
  private readonly song = element('span');
  private shows_cover = true;

  constructor() {
    this.cover.alt = '';
    this.cover.hidden = true;
    this.element.append(this.cover, this.song);
  }

  configure(config: Record<string, unknown>): void {
    typeFace(this.element, config);
    this.shows_cover = config.show_cover !== false;
    if (!this.shows_cover) this.cover.hidden = true;
  }

  label({ song }: Labels): void {
    this.song.textContent = song ?? '';
  }

  take(_event_type: string, { cover_url }: Record<string, unknown>): void {
    this.cover.hidden = !this.shows_cover || typeof cover_url !== 'string';
    if (!this.cover.hidden) this.cover.src = cover_url as string;
  }
}
