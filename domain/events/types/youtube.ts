import { AT, type EventType, type Example, typesOf } from './type';

const youtube = typesOf('youtube');

/** Message of the live chat with more than a text. */
const item = (type: string, display: string, details: Example): Example => ({
  id: 'LCC.EhwKGkNPaXh4ZnJ6d1lvREZRUGd3Z1FkSUJRUDFR',
  snippet: {
    type,
    liveChatId: 'KicKGFVDYWJjZGVmZ2hpamtsbW5vcHFyc3R1dg',
    authorChannelId: 'UCada',
    publishedAt: AT,
    hasDisplayContent: true,
    displayMessage: display,
    ...details,
  },
  authorDetails: {
    channelId: 'UCada',
    channelUrl: 'http://www.youtube.com/channel/UCada',
    displayName: 'Ada L',
    profileImageUrl: 'https://yt3.ggpht.com/ada.jpg',
    isVerified: false,
    isChatOwner: false,
    isChatSponsor: true,
    isChatModerator: false,
  },
});
const ITEM = {
  optional: [
    ...['liveChatId', 'authorChannelId', 'hasDisplayContent', 'displayMessage'].map((name) => `snippet.${name}`),
    ...['channelUrl', 'profileImageUrl', 'isVerified', 'isChatOwner', 'isChatSponsor', 'isChatModerator'].map(
      (name) => `authorDetails.${name}`,
    ),
  ],
};

/** YouTube's events: `raw` is the item of the live chat, of `subscribe` what its feed says. Source: spec doc3 §6.2. */
export const YOUTUBE: readonly EventType[] = [
  youtube(
    'subscribe',
    'A video was published or changed',
    {
      channel_id: 'UCabcdefghijklmnopqrstuv',
      video_id: 'dQw4w9WgXcQ',
      title: 'The last boss, really',
      published: AT,
      updated: AT,
    },
    { nullable: ['video_id', 'title', 'published', 'updated'], optional: ['title', 'published', 'updated'] },
  ),
  youtube(
    'member',
    'Somebody becomes a member, or tells for how long they have been one',
    item('newSponsorEvent', 'Welcome to Gold!', { newSponsorDetails: { memberLevelName: 'Gold', isUpgrade: false } }),
    { optional: [...ITEM.optional, 'snippet.newSponsorDetails', 'snippet.newSponsorDetails.isUpgrade'] },
  ),
  youtube(
    'superchat',
    'A message was paid for',
    item('superChatEvent', '€5.00 from Ada L: "great stream"', {
      superChatDetails: {
        amountMicros: '5000000',
        currency: 'EUR',
        amountDisplayString: '€5.00',
        userComment: 'great stream',
        tier: 2,
      },
    }),
    {
      optional: [...ITEM.optional, 'snippet.superChatDetails.userComment'],
      digits: ['snippet.superChatDetails.amountMicros'],
    },
  ),
  youtube(
    'supersticker',
    'A sticker was paid for',
    item('superStickerEvent', '€2.00 from Ada L', {
      superStickerDetails: {
        superStickerMetadata: { stickerId: 'sticker-1', altText: 'Waving cat', language: 'en' },
        amountMicros: '2000000',
        currency: 'EUR',
        amountDisplayString: '€2.00',
        tier: 1,
      },
    }),
    {
      optional: [...ITEM.optional, 'snippet.superStickerDetails.superStickerMetadata.language'],
      digits: ['snippet.superStickerDetails.amountMicros'],
    },
  ),
  youtube(
    'gift_membership',
    'Memberships are given away',
    item('membershipGiftingEvent', 'Gifted 5 memberships', {
      membershipGiftingDetails: { giftMembershipsCount: 5, giftMembershipsLevelName: 'Gold' },
    }),
    ITEM,
  ),
  youtube(
    'gift_membership_received',
    'Somebody was given a membership',
    item('giftMembershipReceivedEvent', 'Was gifted a membership by Grace H', {
      giftMembershipReceivedDetails: {
        memberLevelName: 'Gold',
        gifterChannelId: 'UCgrace',
        associatedMembershipGiftingMessageId: 'LCC.gifting',
      },
    }),
    ITEM,
  ),
  youtube(
    'poll',
    'A poll of the live chat',
    item('pollEvent', 'Where do we go?', {
      pollDetails: {
        metadata: {
          questionText: 'Where do we go?',
          status: 'active',
          options: [
            { optionText: 'The cave', tally: '84' },
            { optionText: 'The tower', tally: '56' },
          ],
        },
      },
    }),
    {
      optional: [
        ...ITEM.optional,
        'snippet.pollDetails.metadata.status',
        'snippet.pollDetails.metadata.options[].tally',
      ],
    },
  ),
];
