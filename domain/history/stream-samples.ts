import type { Json } from '../../lib/json/json';
import { DataError } from '../../kernel/projection';

/** Sample of a live broadcast, taken once a minute; the `raw` of a record on `stream-samples`. Spec doc2 §2.14. */
export interface StreamSample {
  /** The platform's own id of the broadcast. */
  broadcast_id: string;
  viewer_count: number;
  /** Null where the platform does not count them. */
  follower_count: number | null;
  /** Title of the broadcast; null, like the category, where the platform has no such member. */
  title: string | null;
  category: string | null;
  tags: string[];
}

/** `type` of the envelope of a sample. */
export const SAMPLE_TYPE = 'stream:sample';
/** Time between two samples of a broadcast; they are taken at whole minutes. */
export const SAMPLE_EVERY_MS = 60_000;

/** @throws DataError naming the member that is missing or of the wrong kind */
export function readStreamSample(raw: string): StreamSample {
  const value = parsed(raw);
  const member = (name: string): Json | undefined =>
    typeof value === 'object' && value !== null && !Array.isArray(value) ? value[name] : undefined;
  const broadcast_id = member('broadcast_id');
  if (typeof broadcast_id !== 'string' || broadcast_id === '') throw new DataError('broadcast_id must be a text');
  const followers = member('follower_count') ?? null;
  return {
    broadcast_id,
    viewer_count: count(member('viewer_count'), 'viewer_count'),
    follower_count: followers === null ? null : count(followers, 'follower_count'),
    title: text(member('title')),
    category: text(member('category')),
    tags: tags(member('tags')),
  };
}

const text = (value: Json | undefined): string | null => (typeof value === 'string' && value !== '' ? value : null);
const tags = (value: Json | undefined): string[] =>
  (Array.isArray(value) ? value : []).filter((tag) => typeof tag === 'string');

function parsed(raw: string): Json {
  try {
    return JSON.parse(raw) as Json;
  } catch (error) {
    throw new DataError(`no JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function count(value: Json | undefined, name: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new DataError(`${name} must be a whole number of 0 or more`);
  }
  return value;
}
