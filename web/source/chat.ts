import { element } from '../dom';
import { numberOf, typeFace } from './settings';
import { ChatPictures } from './chat-pictures';
import type { ChannelPictures, ChatLine, Drawing } from './types';

const MAX_LINES = 100;

/** Lines of the chats, newest at the bottom; at most 100 wait and stand there, however fast messages come. */
export class Chat implements Drawing {
  readonly element = element('ol', 'chat');
  private most = 20;
  private hide_ms = 0;
  private shows_badges = true;
  private pictures = new ChatPictures([]);
  private waiting: ChatLine[] = [];
  private frame = 0;
  /** Timer of all lines: a line that has left the list is not kept for its time. */
  private hiding = 0;

  configure(config: Record<string, unknown>): void {
    typeFace(this.element, config);
    this.most = Math.min(MAX_LINES, numberOf(config, 'max_lines', 20));
    this.hide_ms = 1_000 * numberOf(config, 'hide_after_seconds', 0);
    this.shows_badges = config.show_badges !== false;
    this.trim();
  }

  showPictures(channels: readonly ChannelPictures[]): void {
    this.pictures = new ChatPictures(channels);
  }

  /** Lines may have been deleted during a gap of the connection. */
  begin(): void {
    this.waiting = [];
    this.element.replaceChildren();
  }

  take(event_type: string, data: Record<string, unknown>): void {
    if (event_type === 'chat:delete') this.remove((line) => line.platform_message_id === data.platform_message_id);
    else if (event_type === 'chat:clear_user')
      this.remove((line) => line.platform === data.platform && line.platform_user_id === data.platform_user_id);
    else if (event_type === 'chat:erased') this.remove((line) => line.id === data.id);
    else if (event_type === 'chat:message') this.add(data as unknown as ChatLine);
  }

  close(): void {
    clearTimeout(this.frame);
    clearTimeout(this.hiding);
  }

  private add(line: ChatLine): void {
    this.waiting.push(line);
    if (this.waiting.length > this.most) this.waiting.shift();
    // A timer and no animation frame: a hidden source has none, and its lines have to be bounded all the same.
    this.frame ||= window.setTimeout(() => this.show(), 30);
  }

  private show(): void {
    this.frame = 0;
    const rows = this.waiting.map((line) => this.pictures.row(line, this.shows_badges));
    this.waiting = [];
    this.element.append(...rows);
    this.trim();
    if (this.hide_ms === 0) return;
    for (const row of rows) row.dataset.until = String(Date.now() + this.hide_ms);
    if (this.hiding === 0) this.hide();
  }

  /** Removes the lines whose time is over, and waits for the next. */
  private hide(): void {
    this.hiding = 0;
    const now = Date.now();
    let next = Infinity;
    for (const row of [...this.element.children] as HTMLElement[]) {
      const { until } = row.dataset;
      if (until === undefined) continue;
      if (Number(until) <= now) row.remove();
      else next = Math.min(next, Number(until));
    }
    if (next < Infinity) this.hiding = window.setTimeout(() => this.hide(), next - now);
  }

  private remove(
    is: (line: Pick<ChatLine, 'id' | 'platform' | 'platform_user_id' | 'platform_message_id'>) => boolean,
  ): void {
    this.waiting = this.waiting.filter((line) => !is(line));
    for (const row of [...this.element.children] as HTMLElement[]) {
      const { id = '', platform = '', user = '', message = '' } = row.dataset;
      if (is({ id, platform, platform_user_id: user, platform_message_id: message })) row.remove();
    }
  }

  private trim(): void {
    while (this.element.childElementCount > this.most) this.element.firstElementChild!.remove();
  }
}
