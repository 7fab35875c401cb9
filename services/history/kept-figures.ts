import type { SessionFigures, StoredStream } from '../../domain/history/session-figures';

/**
 * A new count of a finalized session, but with the emotes and GIFs of the earlier one where an erasure has taken uses
 * since: an erasure changes no finalized figure.
 */
export function keepLarger(before: SessionFigures | null, counted: SessionFigures): SessionFigures {
  if (before === null) return counted;
  const streams = counted.streams.map((stream) => {
    const earlier = before.streams.find((one) => keyOf(one) === keyOf(stream));
    return earlier === undefined ? stream : { ...stream, ...largerUses(earlier, stream) };
  });
  return { ...counted, ...largerUses(before, counted), streams };
}

const keyOf = ({ platform, broadcast_id }: StoredStream): string => `${platform}/${broadcast_id}`;

type Uses = Pick<SessionFigures, 'emote_count' | 'gif_count' | 'top_emotes' | 'top_gifs'>;
const largerUses = (before: Uses, counted: Uses): Uses => {
  const emotes = before.emote_count > counted.emote_count ? before : counted;
  const gifs = before.gif_count > counted.gif_count ? before : counted;
  return {
    emote_count: emotes.emote_count,
    gif_count: gifs.gif_count,
    top_emotes: emotes.top_emotes,
    top_gifs: gifs.top_gifs,
  };
};
