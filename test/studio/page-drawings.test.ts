import { Alerts } from '../../web/source/alerts';
import { Chat } from '../../web/source/chat';
import { Stage } from '../../web/source/stage';
import type { AlertControl, DrawnEvent, PageState } from '../../web/source/types';

/** Elements that were moved, or inserted. */
const moved: unknown[] = [];

/** Members of an element that the drawings of a page use. */
class Element {
  className = '';
  src = '';
  alt = '';
  textContent: string | null = null;
  readonly style: Record<string, string> = {};
  readonly dataset: Record<string, string> = {};
  readonly children: Element[] = [];
  private parent: Element | null = null;

  append(...added: (Element | string)[]): void {
    for (const one of added) {
      if (typeof one === 'string') {
        this.textContent = (this.textContent ?? '') + one;
        continue;
      }
      one.remove();
      one.parent = this;
      this.children.push(one);
    }
  }
  insertBefore(added: Element, next: Element | null): void {
    added.remove();
    added.parent = this;
    this.children.splice(next === null ? this.children.length : this.children.indexOf(next), 0, added);
    moved.push(added);
  }
  addEventListener(): void {}
  remove(): void {
    const siblings = this.parent?.children ?? [];
    if (siblings.includes(this)) siblings.splice(siblings.indexOf(this), 1);
    this.parent = null;
  }
  replaceChildren(): void {
    for (const one of [...this.children]) one.remove();
  }
  get childElementCount(): number {
    return this.children.length;
  }
  get firstElementChild(): Element | null {
    return this.children[0] ?? null;
  }
}

/** Audio that plays until it is paused. */
class FakeAudio {
  static readonly played: FakeAudio[] = [];
  muted = false;
  volume = 1;
  is_playing = false;
  constructor(readonly src: string) {}
  async play(): Promise<void> {
    this.is_playing = true;
    FakeAudio.played.push(this);
  }
  pause(): void {
    this.is_playing = false;
  }
  addEventListener(): void {}
}

beforeAll(() => {
  Object.assign(globalThis, { Audio: FakeAudio });
  const document = { createElement: () => new Element(), head: new Element() };
  Object.assign(globalThis, { document, window: globalThis });
});
afterEach(() => jest.useRealTimers());

const labels = (last_follower: string) => ({ last_follower, last_tip: null, song: null });
const state = { undrawn: [], recent: [], emotes: [], assets: {} };
const newest = { id: '1', type: 'text', config: { template: '{{last_follower}}' }, sort_order: 0 };

test('a text has the names of the account after a gap of the connection', () => {
  const root = new Element();
  const stage = new Stage(root as unknown as HTMLElement);
  const text = () => root.children[0]!.children[0]!.textContent;
  stage.update({ ...state, revision: 1, layers: [newest], labels: labels('ada') });
  expect(text()).toBe('ada');
  stage.update({ ...state, revision: 1, layers: [newest], labels: labels('bob') });
  expect(text()).toBe('bob');
});

test('names that the account has after an erasure replace those of a page', () => {
  const root = new Element();
  const stage = new Stage(root as unknown as HTMLElement);
  stage.update({ ...state, revision: 1, layers: [newest], labels: labels('ada') });
  stage.update({ labels: labels('bob'), recent: [] });
  expect(root.children[0]!.children[0]!.textContent).toBe('bob');
});

const followed = (user_name: string, second: number) => ({
  ...{ id: `id-${user_name}`, type: 'kick:follower', platform: 'kick', user_name, amount: null, currency: null },
  created_at: `2026-01-02T03:04:0${second}.000Z`,
});
const rowsOf = (root: Element, layer: number) =>
  root.children[layer]!.children[0]!.children.map(({ textContent }) => textContent!.split(' ')[0]);

test('events that a page has missed are listed, and not announced', () => {
  jest.useFakeTimers();
  const root = new Element();
  const stage = new Stage(root as unknown as HTMLElement);
  const layers = ['alerts', 'event_list'].map((type, index) => ({
    ...{ id: type, type, config: {}, sort_order: index },
  }));
  const whole = { ...state, alerts: { paused: false, muted: false }, revision: 1, layers, labels: labels('ada') };
  stage.update(whole);
  stage.subscribed({ recovered: true });
  stage.take('kick:follower', followed('early', 0), true);
  stage.update(whole);
  stage.take('kick:follower', followed('bob', 1), true);
  expect([rowsOf(root, 0), rowsOf(root, 1)]).toEqual([[], ['bob', 'early']]);
  stage.take('kick:follower', followed('cy', 2));
  expect([rowsOf(root, 0), rowsOf(root, 1)]).toEqual([['cy'], ['cy', 'bob', 'early']]);
  stage.take('event:erased', { id: 'id-cy' }, true);
  expect([rowsOf(root, 0), rowsOf(root, 1)]).toEqual([[], ['bob', 'early']]);
});

test('a list that is added to an open page has the newest events, in their order, each once', () => {
  const root = new Element();
  const stage = new Stage(root as unknown as HTMLElement);
  const list = (id: string) => ({ ...newest, id, type: 'event_list', config: {} });
  stage.update({ ...state, revision: 1, layers: [], labels: labels('ada') });
  stage.update({ revision: 2, changed: [list('first')] });
  stage.take('kick:follower', followed('cy', 3));
  stage.update({ labels: labels('cy'), recent: [followed('bob', 2), followed('ada', 1)] as unknown as DrawnEvent[] });
  expect(rowsOf(root, 0)).toEqual(['cy', 'bob', 'ada']);
  stage.take('event:erased', { id: 'id-bob' });
  stage.update({ revision: 3, changed: [list('second')] });
  expect([rowsOf(root, 0), rowsOf(root, 1)]).toEqual([
    ['cy', 'ada'],
    ['cy', 'ada'],
  ]);
});

test('a layer that keeps its place is not moved by a change of others', () => {
  const root = new Element();
  const stage = new Stage(root as unknown as HTMLElement);
  const layer = (id: string, sort_order: number) => ({ ...newest, id, sort_order });
  stage.update({ ...state, revision: 1, layers: [layer('a', 1), layer('b', 2)], labels: labels('ada') });
  const [first, second] = root.children;
  moved.length = 0;
  stage.update({ revision: 2, changed: [layer('c', 0)] });
  expect(moved).toEqual([root.children[0]]);
  expect(root.children.slice(1)).toEqual([first, second]);
});

test('a chat keeps its lines when all that was missed follows, and none after a gap', () => {
  jest.useFakeTimers();
  const root = new Element();
  const stage = new Stage(root as unknown as HTMLElement);
  const first = { ...state, revision: 1, layers: [{ ...newest, type: 'chat', config: {} }], labels: labels('ada') };
  const lines = () => root.children[0]!.children[0]!.children.length;
  const take = (id: string, event_type = 'chat:message') => {
    stage.take(event_type, { id, platform: 'kick', username: 'ada', message: 'Hi' });
    jest.runAllTimers();
  };
  stage.update(first);
  take('1');
  take('2');
  stage.subscribed({ recovered: true });
  stage.update(first);
  expect(lines()).toBe(2);
  take('1', 'chat:erased');
  expect(lines()).toBe(1);
  stage.subscribed({ recovered: false });
  stage.update(first);
  expect(lines()).toBe(0);
});

test('a chat draws emotes and badges of its channel, and those of the message before', () => {
  jest.useFakeTimers();
  const chat = new Chat();
  const emotes = ['Wow', 'Own'].map((name) => ({ name, url: `https://cdn.example/${name}` }));
  const badges = [{ kind: 'subscriber', id: '3', image_url: 'https://cdn.example/badge' }];
  chat.showPictures([{ platform: 'twitch', sets: [{ emotes }], badges }]);
  const line = {
    ...{ username: 'ada', message: 'Wow Own and', badges: [{ kind: 'subscriber', id: '3', image_url: null }] },
    emotes: [{ text: 'Own', url: 'https://other.example/own' }],
  };
  const pictures = (row: Element) => row.children.flatMap(({ src, alt }) => (src === '' ? [] : [`${src} ${alt}`]));
  chat.take('chat:message', { ...line, platform: 'twitch' });
  chat.configure({ show_badges: true });
  jest.runAllTimers();
  chat.configure({ show_badges: false });
  chat.take('chat:message', { ...line, platform: 'kick' });
  jest.runAllTimers();
  const rows = (chat.element as unknown as Element).children.map(pictures);
  const own = 'https://other.example/own Own';
  expect(rows).toEqual([['https://cdn.example/badge ', 'https://cdn.example/Wow Wow', own], [own]]);
});

test('a chat whose lines are hidden after a time keeps no lines that have left it', () => {
  jest.useFakeTimers();
  const chat = new Chat();
  const lines = () => (chat.element as unknown as Element).children.length;
  chat.configure({ max_lines: 5, hide_after_seconds: 600 });
  for (let n = 0; n < 40; n += 1) {
    chat.take('chat:message', { platform: 'kick', platform_message_id: `${n}`, username: 'ada', message: 'Hi' });
    jest.advanceTimersByTime(1_000);
  }
  expect([lines(), jest.getTimerCount()]).toEqual([5, 1]);
  jest.advanceTimersByTime(598_000);
  expect(lines()).toBe(2);
  jest.advanceTimersByTime(3_000);
  expect([lines(), jest.getTimerCount()]).toEqual([0, 0]);
});

describe('controls of alerts', () => {
  const event = (user_name: string) =>
    ({ type: 'kick:follower', user_name, amount: null, count: null }) as unknown as DrawnEvent;
  const follow = (alerts: Alerts, name: string) => alerts.take('kick:follower', { ...event(name) });
  const control = (action: AlertControl['action'], of: Partial<AlertControl> = {}): AlertControl => ({
    ...{ action, paused: false, muted: false, event: null },
    ...of,
  });
  function opened(settings: object = {}) {
    jest.useFakeTimers();
    const alerts = new Alerts();
    alerts.configure({ alerts: { 'kick:follower': { template: '{{user_name}}', ...settings } } });
    alerts.link({ s: '/sound' });
    const shown = () => (alerts.element as unknown as Element).children.map(({ textContent }) => textContent);
    return { alerts, shown };
  }

  test('hold the queue after the alert that is shown, and go on', () => {
    const { alerts, shown } = opened();
    for (const name of ['ada', 'bob']) follow(alerts, name);
    alerts.control(control('pause', { paused: true }));
    expect(shown()).toEqual(['ada']);
    jest.advanceTimersByTime(6_000);
    expect(shown()).toEqual([]);
    follow(alerts, 'cy');
    expect([shown(), jest.getTimerCount()]).toEqual([[], 0]);
    alerts.control(control('resume'));
    expect(shown()).toEqual(['bob']);
    alerts.control(control('skip'));
    expect(shown()).toEqual(['cy']);
    alerts.control(control('skip'));
    expect([shown(), jest.getTimerCount()]).toEqual([[], 0]);
    alerts.control(control('replay', { event: event('ada') }));
    expect(shown()).toEqual(['ada']);
  });

  test('end with events that are erased, shown or waiting', () => {
    const { alerts, shown } = opened();
    for (const name of ['ada', 'bob', 'cy']) alerts.take('kick:follower', { ...event(name), id: `id-${name}` });
    alerts.take('event:erased', { id: 'id-bob' });
    expect(shown()).toEqual(['ada']);
    alerts.take('event:erased', { id: 'id-ada' });
    expect(shown()).toEqual(['cy']);
    alerts.control(control('skip'));
    expect([shown(), jest.getTimerCount()]).toEqual([[], 0]);
  });

  test('wait on a page that begins paused', () => {
    const { alerts, shown } = opened();
    alerts.begin({ alerts: { paused: true, muted: false } } as PageState);
    follow(alerts, 'ada');
    expect(shown()).toEqual([]);
    alerts.begin({ alerts: { paused: false, muted: false } } as PageState);
    expect(shown()).toEqual(['ada']);
  });

  test('silence the sounds of alerts, those that play too, and end that of a skipped one', () => {
    const { alerts } = opened({ sound_id: 's' });
    FakeAudio.played.length = 0;
    follow(alerts, 'ada');
    alerts.control(control('mute', { muted: true }));
    alerts.control(control('skip', { muted: true }));
    follow(alerts, 'bob');
    const states = FakeAudio.played.map(({ muted, is_playing }) => [muted, is_playing]);
    expect(states).toEqual([
      [true, false],
      [true, true],
    ]);
    alerts.control(control('unmute'));
    expect(FakeAudio.played[1]!.muted).toBe(false);
  });
});
