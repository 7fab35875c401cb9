import { ERASERS, RECORD_ERASERS } from '../../bin/upkeep/erasers';
import { EVENTS, PROJECTIONS } from '../../bin/areas';
import { readTables } from '../../engines/backup/catalog';
import { CLEANED_WITH_RECORDS } from '../../privacy/erasure/erasure';
import { z } from 'zod';
import { catalogue, event, events, subject, type EventCatalogue } from '../../kernel/event';
import { domainEvents, topic, type Projection } from '../../kernel/projection';
import { testDatabase } from '../support/database';

const COUNTS = ['stream_samples'];
/** Reads every event, and keeps nothing of what one says. */
const PLACES = ['account_events'];
/** Keeps ids of keys, and nothing of what a record says. */
const KEY_IDS = ['chatters'];
/**
 * Tables that hold nothing of a person in clear, and why. A new table is either here or in an eraser's `tables`.
 */
const NOTHING_PERSONAL: Readonly<Record<string, readonly string[]>> = {
  'ids, hashes, times, switches': [
    'account_events',
    'account_feature_overrides',
    'adapter_links',
    'app_pauses',
    'kick_first_subscriptions',
    'twitch_conduits',
    'twitch_conduit_subscriptions',
    'account_limit_overrides',
    'emitted_bytes',
    'account_invites',
    'account_login_assignments',
    'account_members',
    'account_plans',
    'active_service_keys',
    'account_roles',
    'account_schedules',
    'automation_schedules',
    'automation_webhook_failures',
    'automation_accounts',
    'admin_roles',
    'bot_command_uses',
    'bot_connections',
    'channel_connections',
    ...KEY_IDS,
    'oauth_states',
    'system_connections',
    'checkpoints',
    'credential_origins',
    'credential_uses',
    'custom_bot_overrides',
    'deleted_users',
    'discord_shards',
    'dissolved_accounts',
    'feature_flags',
    'feature_flags_before_events',
    'plan_flags_to_adopt',
    'finished_jobs',
    'leases',
    'login_places',
    'lost_logins',
    'member_keys',
    'memberships_to_end',
    'ledger',
    'ledger_bodies',
    'login_connections',
    'member_tokens',
    'oauth_clients',
    'oauth_codes',
    'oauth_grants',
    'plan_features',
    'user_overrides',
    'channel_heads',
    'chat_heads',
    'chat_sends',
    'user_channels',
    'public_channel_stats',
    'running_exports',
    'session_claims',
    'session_row_counts',
    'late_spans',
    'crawler_reads',
    'erased_channels',
    'erased_shared_messages',
    'erased_uses',
    'lake_files',
    'lake_erasures',
    'counted_events',
    'merged_sessions',
    'pending_session_merges',
    'widget_access',
    'overlay_access',
    'overlay_tokens',
    'widget_tokens',
    'session_links',
    'chat_message_counts',
    'outbox_heads',
    'event_log_counters',
    'archive_segments',
    'bound_tokens',
    'revocations',
    'sessions',
    'shop_connections',
    'subject_key_erasures',
    'subject_places',
    'subject_sources',
    'subject_streams',
    'unknown_user_refreshes',
    'uploads_under_way',
    'system_keys',
    'timed_messages',
    'user_admin_roles',
    'user_preferences',
    'user_role_holders',
    'user_roles',
    'user_sessions',
    'users',
    'webhook_door',
    'ws_tokens',
  ],
  "the tenant's own words about itself": [
    'accounts',
    'api_keys',
    'automation_triggers',
    'automations',
    'bot_command_overrides',
    'bot_commands',
    'bot_modules',
    'broadcast_figures',
    'channel_status',
    'discord_guild_channels',
    'discord_guilds',
    'discord_posts',
    'discord_slash_commands',
    'live_session_figures',
    'public_channels',
    'public_streams',
    'public_stream_categories',
    'public_stream_emotes',
    'rewards',
    'session_streams',
    'stream_sessions',
    'popout_tokens',
    'se_tokens',
    'service_keys',
    'sounds',
    'uploads',
    'widgets',
    'overlays',
    'overlay_layers',
    'overlay_folders',
  ],
  'what the operator offers': ['plans'],
  'channels that the operator names': ['crawler_opt_outs', 'crawler_scope', 'crawler_watchlist'],
  'counts of a channel': COUNTS,
  'sealed: unreadable without a key of ours': [
    'app_secrets',
    'automation_webhook_secrets',
    'channel_handles',
    'channel_names',
    'connection_grants',
    'connection_secrets',
    'se_token_secrets',
    'installation',
    'signing_keys',
    'subject_hash_key',
    'subject_keys',
  ],
  'personal parts are sealed under their keys': ['broker_records', 'domain_events', 'graphile_worker._private_jobs'],
  machinery: [
    'projection_build_places',
    'projection_builds',
    'projection_states',
    'work_freed',
    'work_holds',
    'work_members',
    'broker_leases',
    'broker_members',
    'broker_partitions',
    'broker_topics',
    'discord_buckets',
    'discord_routes',
    'graphile_worker._private_job_queues',
    'graphile_worker._private_known_crontabs',
    'graphile_worker._private_tasks',
    'graphile_worker.migrations',
    'job_holders',
    'projection_build_places',
    'projection_builds',
    'projection_states',
    'schema_migrations',
    'schema_migrations_lock',
    'youtube_quota',
    'youtube_quota_shares',
  ],
};
const cleaned = new Set([...ERASERS, ...RECORD_ERASERS].flatMap(({ tables }) => tables).concat(CLEANED_WITH_RECORDS));

test('every table is cleaned by an eraser, or is known to hold nothing of a person', async () => {
  const t = await testDatabase();
  const tables = (await readTables(t.db)).map(({ name }) => name);
  await t.drop();
  const known = Object.values(NOTHING_PERSONAL).flat();
  expect(tables.filter((name) => !cleaned.has(name) && !known.includes(name))).toEqual([]);
  expect([...cleaned, ...known].filter((name) => !tables.includes(name))).toEqual([]);
});

/** Read models of personal members, or of records about persons, that no eraser cleans. */
function uncleaned(projections: readonly Projection[], declared: EventCatalogue): string[] {
  const personal = [...declared].filter(([, one]) => Object.keys(one.personal).length > 0);
  const types = new Set(personal.map(([type]) => type));
  return projections
    .filter(({ tables }) => tables.length > 0)
    .filter(({ from }) => from.kind === 'topic' || from.types.some((type) => types.has(type)))
    .filter(
      ({ name, tables }) =>
        !RECORD_ERASERS.some(({ projection }) => projection === name) &&
        !tables.some((table) => cleaned.has(table) || [...COUNTS, ...PLACES, ...KEY_IDS].includes(table)),
    )
    .map(({ name }) => name);
}

test('a read model of personal members or of records about persons has an eraser', () => {
  expect(uncleaned(PROJECTIONS, EVENTS)).toEqual([]);
  const declared = catalogue([
    events({
      'guest:invited': event(
        { id: z.uuid(), mail: z.string().nullable() },
        { personal: { mail: subject('user', 'id') } },
      ),
    }),
  ]);
  const base = { version: 1, tables: ['guests'], apply: async () => [] };
  const guests: Projection = { name: 'guests', from: domainEvents(['guest:invited']), ...base };
  const chat: Projection = { name: 'chat', from: topic('chat-events'), ...base };
  const keys: Projection = { name: 'keys', from: domainEvents(['key:made']), ...base };
  expect(uncleaned([guests, chat, keys], declared)).toEqual(['guests', 'chat']);
});
