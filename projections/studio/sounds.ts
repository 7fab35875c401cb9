import { SOUND_EVENTS, soundsChannel } from '../../domain/studio/sounds';
import type { ChannelMessage } from '../../kernel/projection';
import { sql } from '../../kernel/sql';
import { all, each, eventProjection } from '../runtime/drive/handlers';

/** Sounds of accounts. Source: spec doc2 §2.13, extra-facts §9. */
export const sounds = eventProjection({
  name: 'sounds',
  version: 1,
  tables: ['sounds'],
  events: [SOUND_EVENTS],
  on: {
    'sound:created': all(sql`
      insert into sounds
        (id, account_id, name, filename, content_type, size_bytes, duration_ms, blob_key, sha256, created_at)
      select sound_id, account_id, name, filename, content_type, size_bytes, duration_ms, blob_key, sha256, created_at
      from e on conflict (id) do nothing`),
    'sound:updated': each(
      ['sound_id'],
      sql`
      update sounds s set name = e.name, duration_ms = e.duration_ms, waveform = e.waveform::jsonb
      from e where s.id = e.sound_id`,
    ),
    'sound:deleted': all(sql`delete from sounds s using e where s.id = e.sound_id`),
  },
  messages: {
    'sound:created': (event) => changed('created', event),
    'sound:updated': (event) => changed('updated', event),
    'sound:deleted': (event) => changed('deleted', event),
  },
});

const changed = (
  action: string,
  { account_id, sound_id }: { account_id: string; sound_id: string },
): ChannelMessage[] => [
  {
    channel: soundsChannel(account_id),
    event_type: 'sound:list:updated',
    data: JSON.stringify({ action, sound_id }),
  },
];
