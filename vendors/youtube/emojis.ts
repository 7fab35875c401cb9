import { z } from 'zod';
import { usable } from '../emotes/sources';
import type { EmoteSource } from '../emotes/port';
import { bodyOf } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpClients } from '../http/port';

const Emojis = z.array(
  z.object({
    emojiId: z.string(),
    shortcuts: z.array(z.string()).nullish(),
    image: z.object({ thumbnails: z.array(z.object({ url: z.string() })).nullish() }).nullish(),
  }),
);
/** YouTube's ids are a channel and an emoji (`UC…/…`), or the character itself. */
const ID = /^\S{1,100}$/u;
const MAX_BYTES = 8 << 20;
const DEADLINE_MS = 5_000;

/** Emojis that every chat of YouTube has. The Data API lists none: this is the file of YouTube's own chat. */
export function youtubeEmojis(http: HttpClients, { youtube_url }: { youtube_url: string }): EmoteSource {
  const client = http.client('youtube-emojis', [hostOf(youtube_url)]);
  return {
    provider: 'youtube',
    global: {
      platforms: ['youtube'],
      async emotes() {
        const url = `${youtube_url}/youtube/img/emojis/emojis-png-7.json`;
        const answer = await client.ask({ method: 'GET', url, max_bytes: MAX_BYTES, deadline_ms: DEADLINE_MS });
        const emojis = bodyOf(answer, Emojis, url).flatMap(({ emojiId: id, shortcuts, image }) => {
          const [name] = shortcuts ?? [];
          const address = image?.thumbnails?.at(-1)?.url ?? null;
          return name === undefined ? [] : [{ id, name, url: address, animated: false }];
        });
        return usable(emojis, ID);
      },
    },
  };
}
