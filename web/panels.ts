import type { Channels } from '../clients/js/index';
import { chatLine, type ChatText } from './chat-line';
import { byId, element } from './dom';

const LINES = 100;

/** Chats of the account; the panel appears with the first message. */
export class Chat {
  private readonly list = byId('chat');

  add(message: Channels[`chat:${string}`]): void {
    if (message.event_type === 'chat:message' && message.data.type === undefined) this.say(message.data);
    else if (message.event_type === 'chat:delete') this.grey('message', message.data.platform_message_id);
    else if (message.event_type === 'chat:clear_user') {
      const { platform, platform_user_id } = message.data;
      this.grey('person', `${platform} ${platform_user_id}`);
    }
  }

  private say(data: ChatText): void {
    byId('chat-panel').hidden = false;
    const line = chatLine(data);
    // Keeps the scroll position of a reader further up.
    const at_end = this.list.scrollHeight - this.list.scrollTop - this.list.clientHeight < 40;
    this.list.append(line);
    if (this.list.childElementCount > LINES) this.list.firstElementChild!.remove();
    if (at_end) this.list.scrollTop = this.list.scrollHeight;
  }

  private grey(what: 'message' | 'person', id: string): void {
    for (const line of this.list.querySelectorAll<HTMLElement>('li'))
      if (line.dataset[what] === id) line.classList.add('gone');
  }
}

/** Viewers of each broadcast on air; the panel appears with the first number. */
export class Viewers {
  private readonly counts = new Map<string, number>();

  take(message: Channels[`channel-status:${string}`]): void {
    const { platform } = message.data;
    if (message.event_type === 'channel:figures') this.counts.set(platform, message.data.viewer_count);
    else if (message.event_type === 'channel:offline') this.counts.delete(platform);
    this.show();
  }

  private show(): void {
    byId('viewers-panel').hidden = this.counts.size === 0;
    const rows = [...this.counts].map(([name, number]) => {
      const row = element('li', '', element('span', 'platform', name), ' ', element('b', '', number.toLocaleString()));
      row.dataset.platform = name;
      return row;
    });
    byId('viewers').replaceChildren(...rows);
  }
}
