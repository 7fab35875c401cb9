import { element } from '../dom';
import { Alerts } from './alerts';
import { Chat } from './chat';
import { Custom } from './custom';
import { Image } from './image';
import { ERASED, mergedEvents, recentAfter } from './recent';
import { EventList, Music, Text, Timer } from './lists';
import type { AlertControl, DrawnEvent, Drawing, Labels, Layer, PageState } from './types';

const DRAWINGS: Readonly<Record<string, () => Drawing>> = {
  chat: () => new Chat(),
  alerts: () => new Alerts(),
  event_list: () => new EventList(),
  text: () => new Text(),
  timer: () => new Timer(),
  music: () => new Music(),
  image: () => new Image(),
  custom: () => new Custom(),
};
const EVENT_TYPES: ReadonlySet<string> = new Set(['alerts', 'event_list']);

/** Types that draw a forwarded message. */
function drawnBy(event_type: string, type: string): boolean {
  if (type === 'custom') return true;
  if (event_type.startsWith('chat:')) return type === 'chat';
  if (event_type === 'spotify:now-playing') return type === 'music';
  return EVENT_TYPES.has(type);
}

interface Update {
  revision?: number;
  width?: number;
  height?: number;
  background?: string;
  layers?: Layer[];
  changed?: Layer[];
  removed?: string[];
}

/** The layers of an overlay, in their order. */
export class Stage {
  private readonly drawn = new Map<string, { layer: Layer; drawing: Drawing; frame: HTMLElement }>();
  /** All messages since the state before are there, or follow. */
  private is_whole = false;
  private revision = -1;
  private state: PageState = {
    labels: { last_follower: null, last_tip: null, song: null },
    undrawn: [],
    recent: [],
    emotes: [],
    assets: {},
    alerts: { paused: false, muted: false },
  };
  /** Forwarded messages wait for the first state. */
  private early: Parameters<Stage['take']>[] | null = [];

  constructor(private readonly root: HTMLElement) {}

  /** A subscription was accepted; `recovered`: without a gap since the one before. */
  subscribed({ recovered }: { recovered: boolean }): void {
    this.is_whole = recovered;
  }

  /** The whole state, which replaces the layers, or a change of them. */
  update({ revision, layers, changed, removed, ...sent }: Update & Partial<PageState>): void {
    this.resize(sent);
    if (layers !== undefined) {
      this.begin(layers, sent);
      this.revision = revision ?? 0;
      const early = this.early ?? [];
      this.early = null;
      for (const message of early) this.take(...message);
      return;
    }
    if (sent.labels !== undefined) this.relabel(sent.labels);
    if (sent.recent !== undefined) {
      this.state = { ...this.state, recent: mergedEvents(sent.recent, this.state.recent) };
      for (const { drawing } of this.drawn.values()) drawing.list?.(this.state.recent);
    }
    if (sent.assets !== undefined) {
      this.state = { ...this.state, assets: sent.assets };
      for (const { drawing } of this.drawn.values()) drawing.link?.(sent.assets);
    }
    if (sent.emotes !== undefined) {
      this.state = { ...this.state, emotes: sent.emotes };
      for (const { drawing } of this.drawn.values()) drawing.showPictures?.(sent.emotes);
    }
    if (revision === undefined || revision <= this.revision || this.early !== null) return;
    this.revision = revision;
    for (const id of removed ?? []) this.remove(id);
    for (const layer of changed ?? []) this.put(layer);
    this.arrange();
  }

  /** `missed`: the message was sent before the page came back; its event is listed and not announced. */
  take(event_type: string, data: Record<string, unknown>, missed = false): void {
    if (this.early !== null) {
      if (this.early.length < 100) this.early.push([event_type, data, missed]);
      return;
    }
    if (event_type === 'overlay:alerts') {
      this.control(data as unknown as AlertControl);
      return;
    }
    this.state = { ...this.state, recent: recentAfter(this.state.recent, event_type, data) };
    const is_announced = !missed || event_type === ERASED;
    for (const { layer, drawing } of this.drawn.values())
      if (drawnBy(event_type, layer.type) && (is_announced || layer.type !== 'alerts'))
        drawing.take?.(event_type, data);
    const labels = labelOf(event_type, data);
    if (labels !== null) this.relabel(labels);
  }

  clear(): void {
    for (const id of [...this.drawn.keys()]) this.remove(id);
  }

  private control(control: AlertControl): void {
    const { action, paused, muted } = control;
    // A skip and a replay may have overtaken the change of what is stored.
    if (action !== 'skip' && action !== 'replay') this.state = { ...this.state, alerts: { paused, muted } };
    for (const { drawing } of this.drawn.values()) drawing.control?.({ ...control, ...this.state.alerts });
  }

  private begin(layers: readonly Layer[], sent: Partial<PageState>): void {
    this.state = { ...this.state, ...sent };
    const kept = new Set(layers.map(({ id }) => id));
    for (const id of [...this.drawn.keys()]) if (!kept.has(id)) this.remove(id);
    for (const layer of layers) this.put(layer);
    for (const { drawing } of this.drawn.values()) {
      if (!this.is_whole) drawing.begin?.(this.state);
      this.equip(drawing);
    }
    this.arrange();
  }

  private put(layer: Layer): void {
    const known = this.drawn.get(layer.id);
    if (known !== undefined && known.layer.type === layer.type) {
      known.layer = layer;
      known.drawing.configure(layer.config);
    } else {
      this.remove(layer.id);
      if (this.state.undrawn.includes(layer.type)) return;
      const make = Object.hasOwn(DRAWINGS, layer.type) ? DRAWINGS[layer.type] : undefined;
      if (make === undefined) return;
      const drawing = make();
      drawing.configure(layer.config);
      drawing.begin?.(this.state);
      this.equip(drawing);
      const frame = element('section', 'layer', drawing.element);
      this.drawn.set(layer.id, { layer, drawing, frame });
    }
    place(this.drawn.get(layer.id)!.frame, layer.config);
  }

  private equip(drawing: Drawing): void {
    drawing.showPictures?.(this.state.emotes);
    drawing.link?.(this.state.assets);
    drawing.label?.(this.state.labels);
  }

  private remove(id: string): void {
    const known = this.drawn.get(id);
    known?.drawing.close?.();
    known?.frame.remove();
    this.drawn.delete(id);
  }

  private arrange(): void {
    const inOrder = [...this.drawn.values()].sort((a, b) => a.layer.sort_order - b.layer.sort_order);
    // A layer that stays in its place is not moved: a moved custom layer begins again.
    inOrder.forEach(({ frame }, index) => {
      const there = this.root.children[index] ?? null;
      if (there !== frame) this.root.insertBefore(frame, there);
    });
  }

  private resize({ width, height, background }: Update): void {
    if (width !== undefined) this.root.style.width = `${width}px`;
    if (height !== undefined) this.root.style.height = `${height}px`;
    if (background !== undefined) this.root.style.background = background;
  }

  private relabel(changed: Partial<Labels>): void {
    this.state = { ...this.state, labels: { ...this.state.labels, ...changed } };
    for (const { drawing } of this.drawn.values()) drawing.label?.(this.state.labels);
  }
}

function labelOf(event_type: string, data: Record<string, unknown>): Partial<Labels> | null {
  const { user_name, amount, currency } = data as unknown as DrawnEvent;
  if (event_type.endsWith(':follower')) return { last_follower: user_name };
  if (event_type.endsWith(':tip'))
    return { last_tip: [user_name, amount, currency].filter((part) => part !== null && part !== undefined).join(' ') };
  if (event_type !== 'spotify:now-playing') return null;
  const { title, artist } = data as { title?: string | null; artist?: string | null };
  return { song: [title, artist].filter((part) => part).join(' – ') || null };
}

/** A layer without a place has the whole overlay. */
function place(frame: HTMLElement, { x, y, width, height }: Record<string, unknown>): void {
  const pixels = (value: unknown, usual: string) => (typeof value === 'number' ? `${value}px` : usual);
  frame.style.left = pixels(x, '0');
  frame.style.top = pixels(y, '0');
  frame.style.width = pixels(width, '100%');
  frame.style.height = pixels(height, '100%');
}
