import { z } from 'zod';

/** User of Helix; each caller adds the members that it reads. */
export const HelixUser = z.object({ id: z.string(), login: z.string(), display_name: z.string() });

/** Answer of Helix `GET /streams`. */
export const HelixStreams = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      user_id: z.string(),
      title: z.string().nullish(),
      game_name: z.string().nullish(),
      tags: z.array(z.string()).nullish(),
      viewer_count: z.number(),
      started_at: z.string(),
    }),
  ),
});
