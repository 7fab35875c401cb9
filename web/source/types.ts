import type { DrawnEvent } from '../../clients/js/channels';

export type { DrawnEvent };

/** A layer as the server sends it. */
export interface Layer {
  id: string;
  type: string;
  config: Record<string, unknown>;
  sort_order: number;
}

export interface ChatLine {
  id?: string;
  platform: string;
  platform_message_id?: string | null;
  platform_user_id?: string | null;
  username: string;
  display_name?: string | null;
  message: string;
  color?: string | null;
  emotes?: { text: string; url?: string | null }[];
  badges?: { kind: string; id?: string | null; image_url?: string | null }[];
}

/** Emotes and badges of a channel. */
export interface ChannelPictures {
  platform: string;
  sets: readonly { emotes: readonly { name: string; url: string | null }[] }[];
  badges: readonly { kind: string; id: string | null; image_url: string | null }[];
}

/** Names that texts are filled with. */
export interface Labels {
  last_follower: string | null;
  last_tip: string | null;
  song: string | null;
}

/** State of the account at the start of a page. */
export interface PageState {
  /** Types of layers whose flags are off. */
  undrawn: readonly string[];
  labels: Labels;
  recent: DrawnEvent[];
  emotes: readonly ChannelPictures[];
  assets: Record<string, string>;
  alerts: AlertState;
}

/** Whether alerts wait, and whether their sounds are silent. */
export interface AlertState {
  paused: boolean;
  muted: boolean;
}

/** Control of the alerts of a page. */
export interface AlertControl extends AlertState {
  action: 'pause' | 'resume' | 'mute' | 'unmute' | 'skip' | 'replay';
  event: DrawnEvent | null;
}

/** Content of a layer, in an element of its own. */
export interface Drawing {
  readonly element: HTMLElement;
  /** Takes changed settings. */
  configure(config: Record<string, unknown>): void;
  /** A forwarded message. */
  take?(event_type: string, data: Record<string, unknown>): void;
  /** The state of the account, after a gap of the connection too: messages are missing before it. */
  begin?(state: PageState): void;
  /** Newest events of the account, for a list that was added later. */
  list?(recent: readonly DrawnEvent[]): void;
  /** Emotes and badges of the account's channels. */
  showPictures?(channels: readonly ChannelPictures[]): void;
  /** Links to files by their ids. */
  link?(assets: Readonly<Record<string, string>>): void;
  /** Labels have changed. */
  label?(labels: Labels): void;
  /** Somebody controls the alerts. */
  control?(control: AlertControl): void;
  close?(): void;
}
