import type { DrawnEvent } from './types';

const GIVES = '{{user_name}} gives {{count}} subscriptions!';
const GIVES_ONE = '{{user_name}} gives a subscription!';
const SUBSCRIBES = '{{user_name}} has subscribed!';
const RENEWS = '{{user_name}} has subscribed for {{months}} months! {{message}}';

type Usual = string | ((event: DrawnEvent) => string);
const given = ({ count }: DrawnEvent): string => (count !== null && count > 1 ? GIVES : GIVES_ONE);
const subscribed = (event: DrawnEvent): string => {
  if (event.count !== null) return given(event);
  return event.months !== null && event.months > 1 ? RENEWS : SUBSCRIBES;
};

/** Templates of the usual alerts, by the action of the event: follows, raids and all that earns money. */
const USUAL: Readonly<Record<string, Usual>> = {
  follower: '{{user_name}} is following now!',
  raid: ({ count }) => (count === null ? '{{user_name}} raids!' : '{{user_name}} raids with {{count}} viewers!'),
  subscribe: subscribed,
  subscriber: subscribed,
  resub: subscribed,
  gift: given,
  gift_sub: given,
  pay_it_forward: GIVES_ONE,
  gift_upgrade: '{{user_name}} keeps the gifted subscription!',
  prime_upgrade: '{{user_name}} has upgraded from Prime!',
  member: '{{user_name}} is a member now!',
  gift_membership: ({ count }) =>
    count !== null && count > 1 ? '{{user_name}} gives {{count}} memberships!' : '{{user_name}} gives a membership!',
  cheer: '{{user_name}} cheers {{amount}} bits! {{message}}',
  superchat: '{{user_name}}: {{amount}} {{currency}} {{message}}',
  supersticker: '{{user_name}}: {{amount}} {{currency}}',
  spell: ({ title }) => (title === null ? '{{user_name}} casts a spell!' : '{{user_name}} casts {{title}}!'),
  tip: '{{user_name}} tips {{amount}} {{currency}}! {{message}}',
  order_paid: 'A new order of {{amount}} {{currency}}!',
};
/** Types with one of these actions that are no alerts: a video is no subscription. */
const NONE: ReadonlySet<string> = new Set(['youtube:subscribe']);

/** Template of the alert of an event where an alert box has no settings; undefined where it announces nothing. */
export function usualTemplate(event_type: string, event: DrawnEvent): string | undefined {
  const action = event_type.slice(event_type.indexOf(':') + 1);
  if (NONE.has(event_type) || !Object.hasOwn(USUAL, action)) return undefined;
  const usual = USUAL[action]!;
  return typeof usual === 'string' ? usual : usual(event);
}
