import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';
import { unreachable } from '../common/unreachable';
import { sniffSound, SOUND_TYPES } from './sounds';

const ids = { upload_id: z.uuid(), account_id: z.uuid() };
export const UPLOAD_PURPOSES = ['overlay', 'widget', 'alert', 'general'] as const;

/** Files of an account, in one stream of it: their bytes are bounded. Source: spec extra-facts §22. */
export const UPLOAD_EVENTS = events({
  'upload:created': event({
    ...ids,
    filename: z.string(),
    content_type: z.string(),
    size_bytes: z.int().describe('Of the kept bytes'),
    storage_key: z.string(),
    sha256: z.string(),
    purpose: z.enum(UPLOAD_PURPOSES),
    created_by: z.uuid().nullable(),
    created_at: instant(),
  }),
  'upload:deleted': event({ ...ids, storage_key: z.string(), deleted_at: instant() }),
});
export type UploadEvent = EventOf<typeof UPLOAD_EVENTS>;
type Created = Extract<UploadEvent, { type: 'upload:created' }>;

export type UploadCommand = { now: string } & (
  | ({ type: 'upload:create'; max_bytes: number } & Omit<Created, 'type' | 'created_at'>)
  | { type: 'upload:delete'; upload_id: string }
  /** The account is gone. */
  | { type: 'upload:delete_all' }
);

interface Upload {
  account_id: string;
  size_bytes: number;
  storage_key: string;
}
/** Uploads of an account by id. */
export type Uploads = Readonly<Record<string, Upload>>;

export const uploadsStream = (account_id: string): string => `uploads-${account_id}`;

export const uploads: Decider<Uploads, UploadCommand, UploadEvent> = {
  initial: {},
  decide(state, command) {
    const { now } = command;
    switch (command.type) {
      case 'upload:create': {
        const { type: _type, now: _now, max_bytes, ...upload } = command;
        if (upload.upload_id in state) return [];
        const used = Object.values(state).reduce((sum, { size_bytes }) => sum + size_bytes, 0);
        if (used + upload.size_bytes > max_bytes)
          throw new DomainError('PLAN_LIMIT_REACHED', { limit: 'max_storage_bytes' });
        return [{ type: 'upload:created', ...upload, created_at: now }];
      }
      case 'upload:delete': {
        const { upload_id } = command;
        const upload = state[upload_id];
        if (upload === undefined) throw new DomainError('UPLOAD_NOT_FOUND', { upload_id });
        return [deleted(upload_id, upload, now)];
      }
      case 'upload:delete_all':
        return Object.entries(state).map(([upload_id, upload]) => deleted(upload_id, upload, now));
      default:
        return unreachable(command);
    }
  },
  evolve(state, event) {
    if (event.type === 'upload:created') {
      const { upload_id, account_id, size_bytes, storage_key } = event;
      return { ...state, [upload_id]: { account_id, size_bytes, storage_key } };
    }
    const { [event.upload_id]: _deleted, ...others } = state;
    return others;
  },
};

const deleted = (upload_id: string, { account_id, storage_key }: Upload, now: string): UploadEvent => ({
  type: 'upload:deleted',
  ...{ upload_id, account_id, storage_key },
  deleted_at: now,
});

export const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif'] as const;
export type ImageType = (typeof IMAGE_TYPES)[number];
export const isImageType = (content_type: string): content_type is ImageType =>
  (IMAGE_TYPES as readonly string[]).includes(content_type);
export const UPLOAD_TYPES = [...IMAGE_TYPES, ...SOUND_TYPES] as const;

const PNG = '\x89PNG\r\n\x1a\n';
/** Brands of AVIF, of stills and of sequences. */
const AVIF_BRANDS: ReadonlySet<string> = new Set(['avif', 'avis']);

/** Content types of uploads, by the first bytes of a file; null of any other. */
export function sniffUpload(head: Uint8Array): string | null {
  const text = Buffer.from(head.subarray(0, 64)).toString('latin1');
  if (text.startsWith(PNG)) return 'image/png';
  if (text.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (text.startsWith('GIF87a') || text.startsWith('GIF89a')) return 'image/gif';
  if (text.startsWith('RIFF') && text.slice(8, 12) === 'WEBP') return 'image/webp';
  if (text.slice(4, 8) === 'ftyp' && brandsOf(text).some((brand) => AVIF_BRANDS.has(brand))) return 'image/avif';
  return sniffSound(head);
}

/** Brands of the first box of a file of the ISO base media format: the major one and the compatible ones. */
function brandsOf(head: string): string[] {
  const length = Buffer.from(head.slice(0, 4), 'latin1').readUInt32BE();
  const brands: string[] = [];
  for (let at = 8; at + 4 <= Math.min(length, head.length); at += 4) if (at !== 12) brands.push(head.slice(at, at + 4));
  return brands;
}
