import { element } from '../dom';
import { filled, typeFace } from './settings';
import type { DrawnEvent, Drawing, Labels, PageState } from './types';

interface Rule {
  enabled?: boolean;
  min_amount?: number;
  template?: string;
  sound_id?: string | null;
  volume?: number;
  duration_ms?: number;
  animation?: string;
  variations?: Omit<Rule, 'variations'>[];
}

/** Alerts that wait; older ones are dropped. */
const MOST_WAITING = 100;
const DURATION_MS = 5_000;
/** Templates of the usual alerts, by the action of the event. */
const USUAL: Readonly<Record<string, string>> = {
  follower: '{{user_name}} is following now!',
  raid: '{{user_name}} raids with {{count}} viewers!',
  subscribe: '{{user_name}} has subscribed!',
  subscriber: '{{user_name}} has subscribed!',
  resub: '{{user_name}} has subscribed for {{months}} months! {{message}}',
  gift: '{{user_name}} gives {{count}} subscriptions!',
  gift_sub: '{{user_name}} gives {{count}} subscriptions!',
  gift_upgrade: '{{user_name}} keeps the gifted subscription!',
  prime_upgrade: '{{user_name}} has upgraded from Prime!',
  member: '{{user_name}} is a member now!',
  gift_membership: '{{user_name}} gives {{count}} memberships!',
  cheer: '{{user_name}} cheers {{amount}} bits! {{message}}',
  superchat: '{{user_name}}: {{amount}} {{currency}} {{message}}',
  supersticker: '{{user_name}}: {{amount}} {{currency}}',
  spell: '{{user_name}} casts {{title}}!',
  tip: '{{user_name}} tips {{amount}} {{currency}}! {{message}}',
  order_paid: 'A new order of {{amount}} {{currency}}!',
};

/** Announces events one at a time; events of before are never announced. */
export class Alerts implements Drawing {
  readonly element = element('div', 'alerts');
  private rules: Record<string, Rule> = {};
  private labels: Labels | null = null;
  private assets: Record<string, string> = {};
  private readonly waiting: { rule: Rule; text: string }[] = [];
  private timer = 0;

  configure(config: Record<string, unknown>): void {
    typeFace(this.element, config);
    this.rules = (config.alerts ?? {}) as Record<string, Rule>;
  }

  begin({ assets }: PageState): void {
    this.assets = assets;
  }

  label(labels: Labels): void {
    this.labels = labels;
  }

  take(event_type: string, data: Record<string, unknown>): void {
    const event = data as unknown as DrawnEvent;
    const rule = this.ruleOf(event_type, event);
    if (rule === null) return;
    const text = filled(rule.template ?? usualOf(event_type) ?? '{{user_name}}', { ...event, ...this.labels });
    this.waiting.push({ rule, text: text.trim() });
    if (this.waiting.length > MOST_WAITING) this.waiting.shift();
    if (this.timer === 0) this.next();
  }

  close(): void {
    clearTimeout(this.timer);
  }

  private ruleOf(event_type: string, { amount, count }: DrawnEvent): Rule | null {
    if (Object.keys(this.rules).length === 0) return usualOf(event_type) === undefined ? null : {};
    const rule = Object.hasOwn(this.rules, event_type) ? this.rules[event_type]! : null;
    const reached = amount ?? count ?? 0;
    if (rule === null || rule.enabled === false || reached < (rule.min_amount ?? 0)) return null;
    const greatest = (rule.variations ?? [])
      .filter(({ enabled, min_amount = 0 }) => enabled !== false && reached >= min_amount)
      .sort((a, b) => (b.min_amount ?? 0) - (a.min_amount ?? 0))[0];
    return { ...rule, ...greatest };
  }

  private next(): void {
    this.element.replaceChildren();
    const alert = this.waiting.shift();
    this.timer = 0;
    if (alert === undefined) return;
    const { animation = 'fade', duration_ms = DURATION_MS, sound_id, volume = 1 } = alert.rule;
    this.element.append(element('p', `alert ${animation}`, alert.text));
    const url = sound_id ? this.assets[sound_id] : undefined;
    if (url !== undefined) play(url, volume);
    this.timer = window.setTimeout(() => this.next(), duration_ms);
  }
}

function usualOf(event_type: string): string | undefined {
  const action = event_type.slice(event_type.indexOf(':') + 1);
  return Object.hasOwn(USUAL, action) ? USUAL[action] : undefined;
}

/** Plays audio of this installation. */
export function play(url: string, volume: number): HTMLAudioElement {
  const audio = new Audio(url);
  audio.volume = volume;
  audio.play().catch((error: unknown) => console.warn('a sound could not be played', error));
  return audio;
}
