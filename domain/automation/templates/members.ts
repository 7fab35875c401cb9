/** A group of values that templates read. */
export interface TemplateGroup {
  /** When the group has values. */
  filled: string;
  /** Permission of the user without which a manual run reads nothing of the group. */
  permission: string | null;
  /** Members and their meaning. */
  members: Readonly<Record<string, string>>;
}

const EVENTS = 'events:read';
const ALWAYS = 'always';
const cause = (types: string): string => `the cause is ${types}`;

/** Groups of templates. Source: spec extra-facts §16. */
export const TEMPLATE_GROUPS: ReadonlyMap<string, TemplateGroup> = new Map(
  Object.entries<TemplateGroup>({
    channel: {
      filled: 'a channel is connected',
      permission: null,
      members: {
        id: "the platform's id of the channel: of the platform of the cause, else of the first connected one",
        name: 'its name',
        platform: 'its platform',
      },
    },
    user: {
      filled: 'the cause has a person',
      permission: 'events:userinfo',
      members: {
        id: "the platform's id of the person",
        name: 'the name',
        displayName: 'the name as the platform shows it',
        platform: 'the platform',
        role: 'the role of the author of a chat line',
      },
    },
    stream: {
      filled: 'a channel is connected',
      permission: null,
      members: {
        isLive: 'true while a broadcast is on air, of the platform of the cause, else of any',
        title: 'its title',
        category: 'its category',
        startedAt: 'when it began',
        uptime: 'time on air, such as `2h 5m`',
      },
    },
    event: {
      filled: 'the cause is an event',
      permission: EVENTS,
      members: {
        id: 'the id of the event',
        type: 'the type, such as `twitch:cheer`',
        platform: 'the platform',
        createdAt: 'when it happened',
        'raw.<field>': 'a member of the payload ([events](events.md))',
      },
    },
    sub: {
      filled: cause('a subscription, a renewal, a gift or a membership'),
      permission: EVENTS,
      members: {
        userName: 'who subscribes or gives',
        tier: 'the tier',
        months: 'the number of months',
        count: 'the number of gifts',
        message: 'the message',
        isGift: 'true of a gift',
        recipientName: 'who receives a gift',
      },
    },
    tip: {
      filled: cause('a tip, or a paid message of YouTube'),
      permission: EVENTS,
      members: { userName: 'who tips', amount: 'the amount', currency: 'the currency', message: 'the message' },
    },
    spotify: {
      filled: 'a player has reported its state within 12 hours',
      permission: 'spotify:read',
      members: {
        title: 'the title',
        artist: 'the artists',
        song: 'artists and title',
        isPlaying: 'true while it plays',
        durationMs: 'the length in milliseconds',
        coverUrl: 'the address of the cover',
      },
    },
    channel_status: {
      filled: 'a channel is connected',
      permission: 'spotify:read',
      members: {
        '<platform>.isOnline': 'true while a broadcast is on air on this platform',
        '<platform>.title': 'its title',
        '<platform>.category': 'its category',
        '<platform>.viewerCount': 'its viewers',
        '<platform>.startedAt': 'when it began',
      },
    },
    cheer: {
      filled: cause('a cheer, or a spell of Trovo'),
      permission: EVENTS,
      members: { userName: 'who cheers', bits: 'the amount', message: 'the message' },
    },
    raid: {
      filled: cause('a raid'),
      permission: EVENTS,
      members: { userName: 'the channel that raids', viewerCount: 'its viewers' },
    },
    redemption: {
      filled: cause('a redemption'),
      permission: EVENTS,
      members: {
        id: 'the id of the redemption',
        userName: 'who redeems',
        rewardId: 'the id of the reward',
        rewardTitle: 'its title',
        rewardCost: 'its cost',
        input: 'the text of the person',
        status: 'the status',
      },
    },
    hype_train: {
      filled: cause('a hype train or its end'),
      permission: EVENTS,
      members: { level: 'the level', total: 'all points', progress: 'points in the level', goal: 'points it needs' },
    },
    poll: {
      filled: cause('a poll or its end'),
      permission: EVENTS,
      members: { id: 'the id', title: 'the title', status: 'the status', winner: 'the choice with most votes' },
    },
    prediction: {
      filled: cause('a prediction, its lock or its end'),
      permission: EVENTS,
      members: { id: 'the id', title: 'the title', status: 'the status', winner: 'the outcome that won' },
    },
    shopify: {
      filled: cause('an event of the shop'),
      permission: EVENTS,
      members: { id: 'the id', title: 'number of the order or title', total: 'the sum', currency: 'the currency' },
    },
    obs: {
      filled: cause('a message `obs:*`'),
      permission: 'obs:read',
      members: { type: 'the type of the message', 'data.<field>': 'a member of the message' },
    },
    discord: {
      filled: 'a Discord server is connected',
      permission: 'bot-connections:read',
      members: { serverId: 'the id of the server', serverName: 'its name' },
    },
    bot: {
      filled: 'the account has a bot of its own on the platform of the cause, else on any',
      permission: null,
      members: { name: 'its name', platform: 'its platform' },
    },
    time: {
      filled: ALWAYS,
      permission: null,
      members: {
        now: 'RFC 3339, in UTC like the others',
        date: 'such as `2026-05-01`',
        time: 'such as `18:05`',
        weekday: 'such as `Friday`',
        unix: 'seconds since 1970',
      },
    },
    custom: {
      filled: ALWAYS,
      permission: null,
      members: { '<name>': 'the variable of this name' },
    },
  }),
);

/** Short names, and what they stand for. */
export const SHORT_NAMES: Readonly<Record<string, string>> = {
  displayName: 'user.displayName',
  songName: 'spotify.title',
  var: 'custom',
};

/** Names without a group that every run has. */
export const OWN_NAMES: Readonly<Record<string, string>> = { platform: 'the platform of the cause' };

/** Names of runs that a command started. */
export const COMMAND_NAMES: Readonly<Record<string, string>> = {
  args: 'the text after the command',
  'arg.<n>': 'a word of it, from 1 on',
  target: 'the first word without `@`, else the name of the author',
};
