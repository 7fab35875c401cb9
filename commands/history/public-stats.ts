import { z } from 'zod';
import { command, feature, invalid, notFound, permission, put } from '../../app/operation';
import { isPlatform } from '../../domain/common/vendors';
import { publicStats, publicStatsStream, publicnessOf } from '../../domain/history/public-stats';
import { readChannelName } from '../../services/connections/channel-names';
import { ownChannel } from '../../services/connections/own-channel';
import { handlesOf } from '../../services/history/channel-handles';
import { ChannelPublicness, isClosedByOperator } from '../../views/history/public-stats';

/** Opens or closes the public statistics of the account's channel. Source: spec doc2 §4.2 "Public statistics". */
export const updateChannelPublicSettings = command({
  name: 'updateChannelPublicSettings',
  summary: "Shows or hides the public statistics of the account's channel on a platform",
  rest: put('/v1/public-stats/channels/{platform}'),
  guard: [feature('feature:public_stats_page'), permission('public-stats:edit')],
  input: z.object({
    platform: z.string().min(1).max(50),
    is_public: z.boolean().nullish(),
    show_top_chatters: z.boolean().nullish(),
  }),
  output: ChannelPublicness,
  errors: {
    NOT_SUPPORTED: invalid('Unsupported platform', { status: 422 }),
    NO_CONNECTION: notFound('No connection for this platform'),
    NO_HANDLE: invalid('The channel has no handle', { status: 422 }),
  },
  async run({ input, caller, context, act, refuse }, services) {
    const { platform } = input;
    const { account_id } = caller;
    if (!isPlatform(platform)) throw refuse('NOT_SUPPORTED');
    const channel = await ownChannel(services.db, account_id, platform);
    if (channel === null) throw refuse('NO_CONNECTION');
    const of = { platform, platform_channel_id: channel.channel_id };
    const [handle] = await handlesOf(services, [of]);
    if (handle === null) throw refuse('NO_HANDLE');
    const closed_by_operator = await isClosedByOperator(services.db, of);
    const { state, events } = await act(publicStats, publicStatsStream(account_id), {
      type: 'public_stats:set',
      account_id,
      ...of,
      is_public: input.is_public ?? undefined,
      show_top_chatters: input.show_top_chatters ?? undefined,
      closed_by_operator,
    });
    const is_closed_still = closed_by_operator && events.length === 0;
    const own = publicnessOf(state, of);
    const publicness = { ...own, is_public: own.is_public && !is_closed_still };
    return {
      ...of,
      channel_name: await readChannelName(services, of),
      ...publicness,
      opted_out_via: publicness.is_public ? null : is_closed_still ? 'operator' : 'owner',
      updated_at: new Date(context.now).toISOString(),
    };
  },
});
