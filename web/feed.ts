import type { EventPush } from '../clients/js/index';
import { byId, element, shownMs } from './dom';
import { personIn } from './people';

const SHOWN = 200;
/** Maximum of events kept while the list is paused; older ones are dropped. */
const HELD = SHOWN;

/** List of events, newest first: one tab stop, navigated with the arrow keys. */
export class Feed {
  private readonly list = byId<HTMLOListElement>('events');
  private readonly select = byId<HTMLSelectElement>('platform');
  private readonly button = byId<HTMLButtonElement>('pause');
  private readonly platforms = new Set<string>();
  private held: HTMLElement[] | null = null;

  constructor() {
    this.button.addEventListener('click', () => this.togglePause());
    this.select.addEventListener('change', () => this.filterAll());
    this.list.addEventListener('keydown', (event) => this.move(event));
    this.list.addEventListener('click', ({ target }) => {
      const head = (target as Element).closest<HTMLElement>('.event');
      if (head) this.toggle(head.parentElement!);
    });
    document.addEventListener('keydown', (event) => {
      const typing = (event.target as Element).closest('input, select, textarea');
      if (event.key === 'p' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) this.togglePause();
    });
  }

  /** @param delay_ms null when the vendor's times are whole seconds */
  add(event_type: string, data: EventPush, delay_ms: number | null): void {
    byId('empty').hidden = true;
    const row = rowOf(event_type, data, delay_ms);
    this.learn(row.dataset.platform!);
    if (this.held) {
      this.held.push(row);
      if (this.held.length > HELD) this.held.shift();
      this.button.textContent = `Go on (${this.held.length})`;
    } else this.show(row);
  }

  private show(row: HTMLElement): void {
    const top = this.list.scrollTop;
    this.filter(row);
    this.list.prepend(row);
    // Keeps the scroll position of a reader further down.
    if (top > 0) this.list.scrollTop = top + row.offsetHeight;
    while (this.list.childElementCount > SHOWN) this.drop(this.list.lastElementChild as HTMLElement);
    if (this.list.querySelector('[tabindex="0"]') === null) headOf(row).tabIndex = 0;
  }

  private drop(row: HTMLElement): void {
    const head = headOf(row);
    const focused = head === document.activeElement;
    row.remove();
    if (head.tabIndex === 0) this.take(this.list.firstElementChild as HTMLElement, focused);
  }

  private togglePause(): void {
    const { held } = this;
    this.held = held ? null : [];
    for (const row of held ?? []) this.show(row);
    this.button.setAttribute('aria-pressed', String(held === null));
    this.button.textContent = held === null ? 'Go on' : 'Pause';
  }

  private learn(platform: string): void {
    if (this.platforms.has(platform)) return;
    this.platforms.add(platform);
    this.select.append(new Option(platform, platform));
  }

  private filter(row: HTMLElement): void {
    row.hidden = this.select.value !== '' && row.dataset.platform !== this.select.value;
  }

  private filterAll(): void {
    for (const row of this.rows()) this.filter(row);
    const visible = this.rows().filter(({ hidden }) => !hidden);
    if (visible[0]) this.take(visible[0], false);
  }

  private rows = (): HTMLElement[] => [...this.list.children] as HTMLElement[];

  private move(event: KeyboardEvent): void {
    const row = (event.target as HTMLElement).closest<HTMLElement>('.event')?.parentElement;
    if (!row) return;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      return this.toggle(row);
    }
    const visible = this.rows().filter(({ hidden }) => !hidden);
    const place = visible.indexOf(row);
    const to = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: visible.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = visible[Math.max(0, Math.min(visible.length - 1, to))];
    if (next) this.take(next, true);
  }

  /** Makes a row the list's tab stop. */
  private take(row: HTMLElement | null, focus: boolean): void {
    if (row === null) return;
    for (const other of this.list.querySelectorAll<HTMLElement>('[tabindex="0"]')) other.tabIndex = -1;
    headOf(row).tabIndex = 0;
    if (focus) headOf(row).focus();
  }

  private toggle(row: HTMLElement): void {
    const open = row.querySelector('pre');
    if (open) open.remove();
    else row.append(element('pre', '', row.dataset.payload!));
    headOf(row).setAttribute('aria-expanded', String(!open));
    this.take(row, true);
  }
}

function rowOf(event_type: string, data: EventPush, delay_ms: number | null): HTMLElement {
  const [prefix = '', action = event_type] = event_type.split(':');
  const at = new Date(data.created_at);
  const time = element('time', '', at.toLocaleTimeString(undefined, { hour12: false }));
  time.setAttribute('datetime', data.created_at);
  const delay = element('span', 'delay', delay_ms === null ? '' : shownMs(delay_ms));
  const person = element('span', 'person', personIn(data.payload) ?? '');
  const platform = element('span', 'platform', prefix);
  const what = element('span', 'action', action.replaceAll('_', ' '));
  const head = element('div', 'event', time, platform, what, person, delay);
  head.setAttribute('role', 'button');
  head.setAttribute('aria-expanded', 'false');
  head.tabIndex = -1;
  const row = element('li', '', head);
  row.dataset.platform = prefix;
  row.dataset.payload = JSON.stringify(data.payload ?? data, null, 2);
  return row;
}

/** Focusable part of a row; its payload follows below. */
const headOf = (row: HTMLElement): HTMLElement => row.firstElementChild as HTMLElement;
