import type { Channels } from '../clients/js/index';
import { element } from './dom';
import { picture } from './picture';

type Pushed = Extract<Channels[`chat:${string}`], { event_type: 'chat:message' }>['data'];
/** A message of a chat, besides the acts that come under the same type. */
export type ChatText = Exclude<Pushed, { type: unknown }>;

/** A piece of a message: parts are no declared member of the channel. */
interface Piece {
  type: string;
  text: string;
  url: string | null;
}

/** A message with its platform, badges, name and emotes. */
export function chatLine(data: ChatText): HTMLElement {
  const name = element('b', 'name', String(data.display_name ?? data.username));
  const badges = data.badges.map(({ kind, image_url }) => picture('badge', image_url ?? null, kind));
  const line = element('li', '', element('span', 'platform', data.platform), ' ');
  for (const badge of badges) line.append(badge, ' ');
  line.append(name, ' ', ...piecesOf(data).map(shown));
  line.dataset.platform = data.platform;
  line.dataset.message = String(data.platform_message_id ?? data.id);
  line.dataset.person = `${data.platform} ${data.platform_user_id ?? ''}`;
  return line;
}

function piecesOf({ message, parts }: ChatText): Piece[] {
  const pieces = Array.isArray(parts) ? parts.filter(isPiece) : [];
  return pieces.length > 0 ? pieces : [{ type: 'text', text: message, url: null }];
}

const isPiece = (part: unknown): part is Piece =>
  typeof part === 'object' && part !== null && typeof (part as Partial<Piece>).text === 'string';

const shown = ({ type, text, url }: Piece): Node | string =>
  type === 'emote' || type === 'gif' ? picture('emote', url, text) : text;
