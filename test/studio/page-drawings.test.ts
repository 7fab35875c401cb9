import { Chat } from '../../web/source/chat';
import { Stage } from '../../web/source/stage';

/** Members of an element that the drawings of a page use. */
class Element {
  className = '';
  textContent: string | null = null;
  readonly style: Record<string, string> = {};
  readonly dataset: Record<string, string> = {};
  readonly children: Element[] = [];
  private parent: Element | null = null;

  append(...added: (Element | string)[]): void {
    for (const one of added) {
      if (typeof one === 'string') continue;
      one.remove();
      one.parent = this;
      this.children.push(one);
    }
  }
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

beforeAll(() => {
  const document = { createElement: () => new Element(), head: new Element() };
  Object.assign(globalThis, { document, window: globalThis });
});
afterEach(() => jest.useRealTimers());

const labels = (last_follower: string) => ({ last_follower, last_tip: null, song: null });
const state = { undrawn: [], recent: [], assets: {} };
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
