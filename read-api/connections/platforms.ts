import { z } from 'zod';
import { get, publicAccess, query, whole } from '../../app/operation';
import { PlatformMetadata, platformMetadata } from '../../views/connections/platforms';

/** Source: spec doc2 §4.1. */
export const platformsMetadata = query({
  name: 'platformsMetadata',
  summary: 'What each platform is, and what may be connected and done there',
  rest: get('/v1/platforms/metadata'),
  pages: whole(),
  guard: [publicAccess],
  input: z.object({}),
  output: PlatformMetadata,
  run: (_request, { db }) => platformMetadata(db),
});
