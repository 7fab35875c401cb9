import { element } from '../dom';
import { picture } from '../picture';
import type { ChannelPictures, ChatLine } from './types';

/** Emotes of one line. */
const MAX_EMOTES = 50;
const MAX_BADGES = 10;

/** Lines of chats with the emotes and badges of their channels. */
export class ChatPictures {
  /** Addresses by platform and name. */
  private readonly emotes = new Map<string, string>();
  private readonly badges = new Map<string, string>();

  constructor(channels: readonly ChannelPictures[]) {
    for (const { platform, sets, badges } of channels) {
      for (const { name, url } of sets.flatMap(({ emotes }) => emotes)) keep(this.emotes, `${platform} ${name}`, url);
      for (const { kind, id, image_url } of badges) keep(this.badges, `${platform} ${kind} ${id ?? ''}`, image_url);
    }
  }

  row(line: ChatLine, shows_badges: boolean): HTMLElement {
    const name = element('span', 'name', line.display_name || line.username);
    if (line.color && /^#[0-9a-f]{6}$/i.test(line.color)) name.style.color = line.color;
    const row = element('li', '', ...(shows_badges ? this.badgesOf(line) : []), name, ' ', ...this.partsOf(line));
    row.dataset.id = line.id ?? '';
    row.dataset.platform = line.platform;
    row.dataset.user = line.platform_user_id ?? '';
    row.dataset.message = line.platform_message_id ?? '';
    return row;
  }

  private badgesOf({ platform, badges = [] }: ChatLine): HTMLElement[] {
    return badges.slice(0, MAX_BADGES).flatMap(({ kind, id, image_url }) => {
      const url = image_url ?? this.badges.get(`${platform} ${kind} ${id ?? ''}`);
      return url === undefined ? [] : [picture('badge', url, '')];
    });
  }

  /** Text with the pictures of its emotes: those of the message, then those of its channel. */
  private partsOf({ platform, message, emotes = [] }: ChatLine): (Node | string)[] {
    const own = new Map(emotes.flatMap(({ text, url }) => (url ? [[text, url] as const] : [])));
    if (own.size + this.emotes.size === 0) return [message];
    let left = MAX_EMOTES;
    return message.split(/(\s+)/).map((word) => {
      const url = own.get(word) ?? this.emotes.get(`${platform} ${word}`);
      return url === undefined || left-- <= 0 ? word : picture('emote', url, word);
    });
  }
}

/** The first of a name counts. */
function keep(addresses: Map<string, string>, name: string, url: string | null): void {
  if (url !== null && !addresses.has(name)) addresses.set(name, url);
}
