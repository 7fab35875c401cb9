import { element } from '../dom';
import { filled, typeFace } from './settings';
import type { AlertControl, AlertState, DrawnEvent, Drawing, Labels, PageState } from './types';
import { usualTemplate } from './usual-alerts';

interface Rule {
  enabled?: boolean;
  min_amount?: number;
  template?: string;
  upload_id?: string | null;
  sound_id?: string | null;
  volume?: number;
  duration_ms?: number;
  animation?: string;
  variations?: Omit<Rule, 'variations'>[];
}

/** Announcement of an event. */
interface Alert {
  /** Of the event; null of one that is not in the log. */
  id: string | null;
  rule: Rule;
  text: string;
}

/** Alerts that wait; older ones are dropped. */
const MAX_WAITING = 100;
const DURATION_MS = 5_000;
/** Announces events one at a time; events of before are never announced. */
export class Alerts implements Drawing {
  readonly element = element('div', 'alerts');
  private rules: Record<string, Rule> = {};
  private labels: Labels | null = null;
  private assets: Readonly<Record<string, string>> = {};
  private waiting: Alert[] = [];
  /** Id of the event whose alert is shown. */
  private shown_id: string | null = null;
  private timer = 0;
  private controls: AlertState = { paused: false, muted: false };
  /** Sounds that play; one may be longer than its alert is shown. */
  private readonly sounds = new Set<HTMLAudioElement>();

  configure(config: Record<string, unknown>): void {
    typeFace(this.element, config);
    this.rules = (config.alerts ?? {}) as Record<string, Rule>;
  }

  link(assets: Readonly<Record<string, string>>): void {
    this.assets = assets;
  }

  label(labels: Labels): void {
    this.labels = labels;
  }

  begin({ alerts }: PageState): void {
    this.set(alerts);
  }

  take(event_type: string, data: Record<string, unknown>): void {
    if (event_type === 'event:erased') return this.remove(data.id);
    const alert = this.alertOf(event_type, data as unknown as DrawnEvent);
    if (alert === null) return;
    this.waiting.push(alert);
    if (this.waiting.length > MAX_WAITING) this.waiting.shift();
    if (this.timer === 0) this.next();
  }

  control({ action, paused, muted, event }: AlertControl): void {
    if (action === 'skip') {
      this.silence();
      this.next();
    } else if (action === 'replay' && event !== null)
      this.take(event.type, event as unknown as Record<string, unknown>);
    else this.set({ paused, muted });
  }

  close(): void {
    clearTimeout(this.timer);
    this.silence();
  }

  private remove(id: unknown): void {
    this.waiting = this.waiting.filter((alert) => alert.id !== id);
    if (this.shown_id !== id) return;
    this.silence();
    this.next();
  }

  private silence(): void {
    for (const sound of this.sounds) sound.pause();
    this.sounds.clear();
  }

  private set(controls: AlertState): void {
    this.controls = controls;
    for (const sound of this.sounds) sound.muted = controls.muted;
    if (this.timer === 0) this.next();
  }

  private alertOf(event_type: string, event: DrawnEvent): Alert | null {
    const rule = this.ruleOf(event_type, event);
    if (rule === null) return null;
    const text = filled(rule.template ?? usualTemplate(event_type, event) ?? '{{user_name}}', {
      ...event,
      ...this.labels,
    });
    return { id: event.id, rule, text: text.trim() };
  }

  private ruleOf(event_type: string, event: DrawnEvent): Rule | null {
    const { amount, count } = event;
    if (Object.keys(this.rules).length === 0) return usualTemplate(event_type, event) === undefined ? null : {};
    const rule = Object.hasOwn(this.rules, event_type) ? this.rules[event_type]! : null;
    const reached = amount ?? count ?? 0;
    if (rule === null || rule.enabled === false || reached < (rule.min_amount ?? 0)) return null;
    const greatest = (rule.variations ?? [])
      .filter(({ enabled, min_amount = 0 }) => enabled !== false && reached >= min_amount)
      .sort((a, b) => (b.min_amount ?? 0) - (a.min_amount ?? 0))[0];
    return { ...rule, ...greatest };
  }

  /** Ends the alert that is shown, and shows the next. */
  private next(): void {
    clearTimeout(this.timer);
    this.timer = 0;
    this.shown_id = null;
    this.element.replaceChildren();
    const alert = this.controls.paused ? undefined : this.waiting.shift();
    if (alert === undefined) return;
    const { animation = 'fade', duration_ms = DURATION_MS, upload_id, sound_id, volume = 1 } = alert.rule;
    const shown = element('p', `alert ${animation}`, alert.text);
    const image = upload_id ? this.assets[upload_id] : undefined;
    if (image !== undefined) {
      const picture = document.createElement('img');
      picture.alt = '';
      picture.src = image;
      shown.prepend(picture);
    }
    this.element.append(shown);
    this.shown_id = alert.id;
    const url = sound_id ? this.assets[sound_id] : undefined;
    if (url !== undefined) this.sound(url, volume);
    this.timer = window.setTimeout(() => this.next(), duration_ms);
  }

  private sound(url: string, volume: number): void {
    const audio = play(url, volume);
    audio.muted = this.controls.muted;
    this.sounds.add(audio);
    const end = () => void this.sounds.delete(audio);
    audio.addEventListener('ended', end);
    audio.addEventListener('error', end);
  }
}

/** Plays audio of this installation. */
export function play(url: string, volume: number): HTMLAudioElement {
  const audio = new Audio(url);
  audio.volume = volume;
  audio.play().catch((error: unknown) => console.warn('a sound could not be played', error));
  return audio;
}
