-- What the migrations build. Written by npm run schema; a test holds it.

create table account_events (
  account_id text not null,
  place bigint not null generated always as identity,
  stream text not null,
  revision bigint not null,
  position text not null,
  type text not null,
  constraint account_events_pkey PRIMARY KEY (stream, revision)
);
CREATE UNIQUE INDEX account_events_places ON public.account_events USING btree (account_id, place);

create table account_feature_overrides (
  account_id uuid not null,
  flag text not null,
  enabled boolean not null,
  set_at timestamp with time zone not null,
  constraint account_feature_overrides_pkey PRIMARY KEY (account_id, flag)
);

create table account_invites (
  id uuid not null,
  account_id uuid not null,
  code_hash text not null,
  code_prefix text not null,
  role_id uuid not null,
  made_by uuid,
  max_uses integer not null,
  uses integer not null default 0,
  expires_at timestamp with time zone,
  created_at timestamp with time zone not null,
  constraint account_invites_pkey PRIMARY KEY (id),
  constraint account_invites_code_hash_key UNIQUE (code_hash)
);
CREATE INDEX account_invites_account ON public.account_invites USING btree (account_id, created_at DESC, id DESC);

create table account_limit_overrides (
  account_id uuid not null,
  name text not null,
  value bigint not null,
  set_at timestamp with time zone not null,
  constraint account_limit_overrides_pkey PRIMARY KEY (account_id, name)
);

create table account_login_assignments (
  account_id uuid not null,
  user_id uuid not null,
  provider text not null,
  id uuid not null,
  login_connection_id uuid not null,
  assigned_at timestamp with time zone not null,
  constraint account_login_assignments_pkey PRIMARY KEY (account_id, user_id, provider)
);
CREATE INDEX account_login_assignments_login ON public.account_login_assignments USING btree (login_connection_id);

create table account_members (
  account_id uuid not null,
  user_id uuid not null,
  id uuid not null,
  role_id uuid not null,
  joined_at timestamp with time zone not null,
  constraint account_members_pkey PRIMARY KEY (account_id, user_id)
);
CREATE INDEX account_members_joined ON public.account_members USING btree (account_id, joined_at, user_id);
CREATE INDEX account_members_user_idx ON public.account_members USING btree (user_id);

create table account_plans (
  account_id uuid not null,
  plan_id uuid not null,
  changed_at timestamp with time zone not null,
  constraint account_plans_pkey PRIMARY KEY (account_id)
);
CREATE INDEX account_plans_plan ON public.account_plans USING btree (plan_id);

create table account_roles (
  id uuid not null,
  account_id uuid not null,
  slug text not null,
  name text not null,
  position integer not null,
  is_system boolean not null,
  permissions text[] not null default '{events:read,events:create,events:userinfo,overlays:read,overlays:create,overlays:edit,overlays:delete,overlays:access-read,overlays:access-grant,overlays:access-revoke,widgets:read,widgets:create,widgets:edit,widgets:delete,widgets:access-read,widgets:access-grant,widgets:access-revoke,extension-data:read,extension-data:edit,spotify:read,spotify:playback,spotify:volume,spotify:queue,spotify:playlist,spotify:device,spotify:worker,chat:read,chat:write,chat:userinfo,chat:delete,chat:ban,chat:timeout,chat:notes,chat:raid,chat:poll,chat:prediction,chat:refresh_user,connections:read,connections:create,connections:edit,connections:delete,settings:read,settings:edit,automations:read,automations:create,automations:edit,automations:delete,automations:execute,members:read,members:create,members:edit,members:delete,uploads:read,uploads:create,uploads:delete,rewards:read,rewards:create,rewards:edit,rewards:delete,tokens:read,tokens:create,tokens:edit,tokens:delete,apikeys:read,apikeys:create,apikeys:edit,apikeys:delete,account:read,account:edit,account:delete,plan:read,plan:edit,login-assignments:read,login-assignments:create,login-assignments:delete,extension-dev:read,extension-dev:create,extension-dev:edit,extension-dev:delete,extension-dev:publish,extension-dev:analytics,extension-dev:payouts,sounds:read,sounds:create,sounds:edit,sounds:delete,sounds:play,bot-modules:read,bot-modules:edit,copyright:read,copyright:edit,copyright:delete,copyright:vote,copyright:report,copyright:recommend,obs:read,obs:edit,obs:delete,roles:read,roles:edit,roles:delete,bot-commands:read,bot-commands:create,bot-commands:edit,bot-commands:delete,bot-connections:read,bot-connections:create,bot-connections:delete,se-tokens:read,se-tokens:create,se-tokens:delete,extension-store:read,extension-store:install,extension-store:uninstall,extension-store:configure,extension-store:review,history:read,history:share,history:export,history:delete,public-stats:read,public-stats:edit,audit-log:read}'::text[],
  holds_all boolean not null generated always as ((is_system AND (slug = 'owner'::text))),
  description text,
  color text not null default '#6b7280'::text,
  is_default boolean not null default true,
  created_at timestamp with time zone,
  updated_at timestamp with time zone,
  constraint account_roles_pkey PRIMARY KEY (id)
);
CREATE INDEX account_roles_account_idx ON public.account_roles USING btree (account_id);

create table account_schedules (
  owner text not null,
  account_id uuid not null,
  job text not null,
  interval_seconds integer not null,
  next_due_at timestamp with time zone not null,
  constraint account_schedules_pkey PRIMARY KEY (owner),
  constraint account_schedules_interval_seconds_check CHECK ((interval_seconds > 0))
);
CREATE INDEX account_schedules_account ON public.account_schedules USING btree (account_id);
CREATE INDEX account_schedules_due ON public.account_schedules USING btree (next_due_at);

create table accounts (
  id uuid not null,
  name text,
  owner_id uuid not null,
  created_at timestamp with time zone not null,
  description text,
  plan text not null default 'free'::text,
  primary_login_connection_id uuid,
  updated_at timestamp with time zone,
  constraint accounts_pkey PRIMARY KEY (id)
);
CREATE INDEX accounts_newest ON public.accounts USING btree (created_at DESC, id DESC);
CREATE INDEX accounts_owner ON public.accounts USING btree (owner_id);
CREATE INDEX accounts_pieces ON public.accounts USING gin (text_pieces(name)) WHERE (name IS NOT NULL);
CREATE INDEX accounts_primary_login ON public.accounts
  USING btree (primary_login_connection_id) WHERE (primary_login_connection_id IS NOT NULL);

create table active_service_keys (
  key_id uuid not null,
  account_id uuid not null,
  made_with uuid,
  constraint active_service_keys_pkey PRIMARY KEY (key_id)
);
CREATE INDEX active_service_keys_account ON public.active_service_keys USING btree (account_id);
CREATE INDEX active_service_keys_made ON public.active_service_keys
  USING btree (made_with) WHERE (made_with IS NOT NULL);

create table adapter_links (
  link text not null,
  vendor text not null,
  connection_id text not null,
  account_id uuid,
  token bigint not null,
  holder uuid not null,
  status text not null,
  detail text,
  status_at timestamp with time zone not null,
  heard_at timestamp with time zone,
  given_away_at timestamp with time zone,
  state jsonb,
  state_token bigint,
  missed_from timestamp with time zone,
  missed_to timestamp with time zone,
  missed_detail text,
  beginning jsonb,
  beginning_token bigint,
  reads_on_until timestamp with time zone,
  reads_on_token bigint,
  constraint adapter_links_pkey PRIMARY KEY (link)
);
CREATE INDEX adapter_links_connection ON public.adapter_links USING btree (connection_id);

create table admin_roles (
  id uuid not null,
  key text not null,
  name text not null,
  description text,
  is_system boolean not null,
  permissions text[],
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint admin_roles_pkey PRIMARY KEY (id),
  constraint admin_roles_key_key UNIQUE (key)
);

create table api_keys (
  id uuid not null,
  account_id uuid not null,
  user_id uuid not null,
  key_hash text not null,
  key_prefix text not null,
  label text not null,
  permissions text[] not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone,
  constraint api_keys_pkey PRIMARY KEY (id),
  constraint api_keys_key_hash_key UNIQUE (key_hash)
);
CREATE INDEX api_keys_owner_idx ON public.api_keys USING btree (account_id, user_id);

create table app_pauses (
  vendor text not null,
  client_id text not null,
  until timestamp with time zone not null,
  constraint app_pauses_pkey PRIMARY KEY (vendor, client_id)
);

create table app_secrets (
  id text not null,
  client_id text not null,
  sealed text not null,
  set_at timestamp with time zone not null default clock_timestamp(),
  constraint app_secrets_pkey PRIMARY KEY (id)
);

create table archive_segments (
  engine text not null,
  topic text not null,
  partition integer not null,
  from_offset bigint not null,
  to_offset bigint not null,
  records bigint not null,
  size_bytes bigint not null,
  sha256 text not null,
  blob_key text not null,
  first_appended_at timestamp with time zone not null,
  last_appended_at timestamp with time zone not null,
  archived_at timestamp with time zone not null default clock_timestamp(),
  constraint archive_segments_pkey PRIMARY KEY (engine, topic, partition, from_offset),
  constraint archive_segments_check CHECK ((to_offset > from_offset))
);

create table audit_log (
  chain text not null,
  number bigint not null,
  hash text not null,
  id uuid not null,
  account_id text,
  action text not null,
  actor_kind text,
  actor_id text,
  target_kind text not null,
  target_id text not null,
  type text not null,
  position text not null,
  created_at timestamp with time zone not null,
  before json,
  after json,
  personal json not null,
  acts_for text,
  constraint audit_log_pkey PRIMARY KEY (chain, number)
);
CREATE INDEX audit_log_actions ON public.audit_log USING btree (chain, action, created_at, number);
CREATE INDEX audit_log_actors ON public.audit_log USING btree (actor_id, created_at, number, id);
CREATE INDEX audit_log_all_actions ON public.audit_log USING btree (action, created_at, number, id);
CREATE UNIQUE INDEX audit_log_ids ON public.audit_log USING btree (id);
CREATE INDEX audit_log_newest ON public.audit_log USING btree (chain, created_at, number);
CREATE INDEX audit_log_targets_newest ON public.audit_log USING btree (target_id, created_at, number, id);
CREATE INDEX audit_log_times ON public.audit_log USING btree (created_at, number, id);

create table audit_log_heads (
  chain text not null,
  number bigint not null,
  hash text not null,
  constraint audit_log_heads_pkey PRIMARY KEY (chain)
);

create table audit_log_targets (
  chain text not null,
  kind text not null,
  id text not null,
  part text not null,
  members json not null,
  personal json not null,
  constraint audit_log_targets_pkey PRIMARY KEY (chain, kind, id, part)
);

create table automation_accounts (
  account_id uuid not null,
  minute timestamp with time zone,
  started integer not null default 0,
  dropped integer not null default 0,
  constraint automation_accounts_pkey PRIMARY KEY (account_id)
);
CREATE INDEX automation_accounts_dropped ON public.automation_accounts USING btree (account_id) WHERE (dropped > 0);

create table automation_cooldowns (
  automation_id uuid not null,
  node_id uuid not null,
  person text not null,
  account_id uuid not null,
  used_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint automation_cooldowns_pkey PRIMARY KEY (automation_id, node_id, person)
);
CREATE INDEX automation_cooldowns_account ON public.automation_cooldowns USING btree (account_id);
CREATE INDEX automation_cooldowns_expires ON public.automation_cooldowns USING btree (expires_at);
CREATE INDEX automation_cooldowns_person ON public.automation_cooldowns USING btree (person) WHERE (person <> ''::text);

create table automation_runs (
  id uuid not null,
  account_id uuid not null,
  automation_id uuid,
  reward_id uuid,
  start_key text not null,
  admitted boolean not null,
  status text not null,
  trigger text not null,
  node_ids uuid[] not null,
  event_id uuid,
  depth integer not null,
  error text,
  second_run text not null,
  graph json not null,
  cause_key_id text,
  cause text,
  persons text[] not null,
  permissions text[],
  window_ms integer not null,
  expires_at timestamp with time zone not null,
  step_count integer not null default 0,
  created_at timestamp with time zone not null,
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  constraint automation_runs_pkey PRIMARY KEY (id),
  constraint automation_runs_start_key_key UNIQUE (start_key)
);
CREATE INDEX automation_runs_active ON public.automation_runs
  USING btree (account_id, created_at, id) WHERE (status = ANY (ARRAY['pending'::text, 'running'::text, 'waiting'::text]));
CREATE INDEX automation_runs_created ON public.automation_runs USING btree (created_at);
CREATE INDEX automation_runs_newest ON public.automation_runs USING btree (automation_id, created_at DESC, id DESC);
CREATE INDEX automation_runs_persons ON public.automation_runs USING gin (persons);

create table automation_schedules (
  automation_id uuid not null,
  node_id uuid not null,
  account_id uuid not null,
  schedule json not null,
  next_due_at timestamp with time zone not null,
  constraint automation_schedules_pkey PRIMARY KEY (automation_id, node_id)
);
CREATE INDEX automation_schedules_account ON public.automation_schedules USING btree (account_id);
CREATE INDEX automation_schedules_due ON public.automation_schedules USING btree (next_due_at);

create table automation_steps (
  id uuid not null,
  run_id uuid not null,
  number integer not null,
  node_id uuid not null,
  type text not null,
  status text not null,
  output text,
  input_key_id text,
  input text,
  error text,
  expires_at timestamp with time zone not null,
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  constraint automation_steps_pkey PRIMARY KEY (id),
  constraint automation_steps_run_id_fkey FOREIGN KEY (run_id) REFERENCES automation_runs(id) ON DELETE CASCADE
);
CREATE INDEX automation_steps_run ON public.automation_steps USING btree (run_id, number);

create table automation_triggers (
  automation_id uuid not null,
  node_id uuid not null,
  account_id uuid not null,
  type text not null,
  matches text[] not null,
  config json not null,
  constraint automation_triggers_pkey PRIMARY KEY (automation_id, node_id)
);
CREATE INDEX automation_triggers_account ON public.automation_triggers USING btree (account_id, type);

create table automation_variables (
  account_id uuid not null,
  name text not null,
  type text,
  value text,
  key_id text,
  sealed text,
  person text,
  updated_at timestamp with time zone not null default clock_timestamp(),
  constraint automation_variables_pkey PRIMARY KEY (account_id, name)
);
CREATE INDEX automation_variables_person ON public.automation_variables USING btree (person) WHERE (person IS NOT NULL);

create table automation_webhook_failures (
  automation_id uuid not null,
  account_id uuid not null,
  failing_since timestamp with time zone not null,
  last_failed_at timestamp with time zone not null,
  constraint automation_webhook_failures_pkey PRIMARY KEY (automation_id)
);
CREATE INDEX automation_webhook_failures_account ON public.automation_webhook_failures USING btree (account_id);
CREATE INDEX automation_webhook_failures_since ON public.automation_webhook_failures USING btree (failing_since);

create table automation_webhook_secrets (
  automation_id uuid not null,
  secret_hash text not null,
  account_id uuid not null,
  sealed text not null,
  created_at timestamp with time zone not null default clock_timestamp(),
  active_since timestamp with time zone,
  ends_at timestamp with time zone,
  constraint automation_webhook_secrets_pkey PRIMARY KEY (automation_id, secret_hash)
);
CREATE INDEX automation_webhook_secrets_account ON public.automation_webhook_secrets USING btree (account_id);
CREATE UNIQUE INDEX automation_webhook_secrets_present ON public.automation_webhook_secrets
  USING btree (automation_id) WHERE ((active_since IS NOT NULL) AND (ends_at IS NULL));

create table automations (
  id uuid not null,
  account_id uuid not null,
  name text not null,
  description text,
  enabled boolean not null,
  second_run text not null,
  revision integer not null,
  disabled_reason text,
  graph json not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint automations_pkey PRIMARY KEY (id)
);
CREATE INDEX automations_account ON public.automations USING btree (account_id, created_at, id);

create table bot_command_overrides (
  account_id uuid not null,
  command_id uuid not null,
  response text,
  platforms text[],
  min_role text,
  cooldown_global integer,
  cooldown_user integer,
  enabled boolean,
  constraint bot_command_overrides_pkey PRIMARY KEY (account_id, command_id)
);
CREATE INDEX bot_command_overrides_command ON public.bot_command_overrides USING btree (command_id);

create table bot_command_user_uses (
  account_id uuid not null,
  command_id uuid not null,
  person text not null,
  used_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint bot_command_user_uses_pkey PRIMARY KEY (account_id, command_id, person)
);
CREATE INDEX bot_command_user_uses_command ON public.bot_command_user_uses USING btree (command_id);
CREATE INDEX bot_command_user_uses_expires ON public.bot_command_user_uses USING btree (expires_at);
CREATE INDEX bot_command_user_uses_person ON public.bot_command_user_uses USING btree (person);

create table bot_command_uses (
  account_id uuid not null,
  command_id uuid not null,
  use_count bigint not null default 0,
  last_used_at timestamp with time zone,
  constraint bot_command_uses_pkey PRIMARY KEY (account_id, command_id)
);
CREATE INDEX bot_command_uses_command ON public.bot_command_uses USING btree (command_id);

create table bot_commands (
  id uuid not null,
  account_id uuid,
  name text not null,
  name_key text not null,
  alias text,
  alias_key text,
  description text,
  response_type text not null,
  response text,
  automation_id uuid,
  platforms text[] not null,
  min_role text not null,
  cooldown_global integer not null,
  cooldown_user integer not null,
  discord_form text not null,
  enabled boolean not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint bot_commands_pkey PRIMARY KEY (id)
);
CREATE INDEX bot_commands_account ON public.bot_commands USING btree (account_id, created_at, id);
CREATE INDEX bot_commands_alias ON public.bot_commands
  USING btree (account_id, alias_key) WHERE (alias_key IS NOT NULL);
CREATE INDEX bot_commands_name ON public.bot_commands USING btree (account_id, name_key);

create table bot_connections (
  id uuid not null,
  account_id uuid not null,
  platform text not null,
  platform_user_id text not null,
  reconnect_required boolean not null default false,
  connected_at timestamp with time zone not null,
  since timestamp with time zone not null,
  constraint bot_connections_pkey PRIMARY KEY (id),
  constraint bot_connections_account_id_platform_key UNIQUE (account_id, platform)
);
CREATE INDEX bot_connections_user_idx ON public.bot_connections USING btree (platform, platform_user_id);

create table bot_module_acts (
  account_id uuid not null,
  id uuid not null,
  person text not null,
  module_name text not null,
  is_warning boolean not null,
  status text not null default 'asked'::text,
  acted_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint bot_module_acts_pkey PRIMARY KEY (account_id, id)
);
CREATE INDEX bot_module_acts_expires ON public.bot_module_acts USING btree (expires_at);
CREATE INDEX bot_module_acts_person ON public.bot_module_acts USING btree (person);
CREATE INDEX bot_module_acts_warnings ON public.bot_module_acts
  USING btree (account_id, person, acted_at) WHERE is_warning;

create table bot_modules (
  account_id uuid not null,
  module_name text not null,
  enabled boolean not null,
  config jsonb not null,
  exempt_roles text[] not null,
  constraint bot_modules_pkey PRIMARY KEY (account_id, module_name)
);

create table bound_tokens (
  id uuid not null,
  kind text not null,
  token_hash text not null,
  account_id uuid not null,
  resource_id uuid not null,
  channel text not null,
  extension_id uuid,
  install_grants text[] not null default '{}'::text[],
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  constraint bound_tokens_pkey PRIMARY KEY (id),
  constraint bound_tokens_kind_check CHECK ((kind = ANY (ARRAY['overlay'::text, 'shared_overlay'::text, 'extension'::text, 'widget'::text]))),
  constraint bound_tokens_token_hash_key UNIQUE (token_hash)
);
CREATE INDEX bound_tokens_account ON public.bound_tokens USING btree (account_id, resource_id);
CREATE INDEX bound_tokens_expiry ON public.bound_tokens USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX bound_tokens_resource ON public.bound_tokens USING btree (resource_id);

create table broadcast_figures (
  account_id uuid not null,
  platform text not null,
  broadcast_id text not null,
  viewer_count bigint not null,
  follower_count bigint,
  stream_title text,
  category text,
  tags jsonb not null,
  sampled_at timestamp with time zone not null,
  constraint broadcast_figures_pkey PRIMARY KEY (account_id, platform, broadcast_id)
);

create table broker_leases (
  topic_id integer not null,
  group_name text not null,
  partition integer not null,
  member uuid not null,
  constraint broker_leases_pkey PRIMARY KEY (topic_id, group_name, partition),
  constraint broker_leases_topic_id_fkey FOREIGN KEY (topic_id) REFERENCES broker_topics(topic_id)
);

create table broker_members (
  topic_id integer not null,
  group_name text not null,
  member uuid not null,
  session_lock bigint not null,
  renewed_at timestamp with time zone not null,
  constraint broker_members_pkey PRIMARY KEY (topic_id, group_name, member),
  constraint broker_members_topic_id_fkey FOREIGN KEY (topic_id) REFERENCES broker_topics(topic_id)
);

create table broker_partitions (
  topic_id integer not null,
  partition integer not null,
  earliest bigint not null default 0,
  next_offset bigint not null default 0,
  constraint broker_partitions_pkey PRIMARY KEY (topic_id, partition),
  constraint broker_partitions_topic_id_fkey FOREIGN KEY (topic_id) REFERENCES broker_topics(topic_id)
) with (fillfactor=20, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000);

create table broker_records (
  topic_id integer not null,
  partition integer not null,
  offset bigint not null,
  appended_at timestamp with time zone not null,
  key text not null,
  headers text,
  value bytea not null,
  constraint broker_records_pkey PRIMARY KEY (topic_id, partition, "offset")
) partition by LIST (topic_id);

create table broker_topics (
  topic_id integer not null generated always as identity,
  topic text not null,
  partitions integer not null,
  constraint broker_topics_pkey PRIMARY KEY (topic_id),
  constraint broker_topics_partitions_check CHECK ((partitions > 0)),
  constraint broker_topics_topic_key UNIQUE (topic)
);

create table channel_connections (
  id uuid not null,
  account_id uuid not null,
  platform text not null,
  platform_channel_id text not null,
  channel_name text,
  connected_at timestamp with time zone not null,
  reconnect_required boolean not null default false,
  bot_enabled boolean not null default true,
  since timestamp with time zone not null default clock_timestamp(),
  constraint channel_connections_pkey PRIMARY KEY (id),
  constraint channel_connections_account_id_platform_key UNIQUE (account_id, platform)
);
CREATE INDEX channel_connections_channel_idx ON public.channel_connections USING btree (platform, platform_channel_id);

create table channel_handles (
  platform text not null,
  platform_channel_id text not null,
  handle_hash text not null,
  key_id uuid not null,
  sealed text not null,
  updated_at timestamp with time zone not null default clock_timestamp(),
  constraint channel_handles_pkey PRIMARY KEY (platform, platform_channel_id),
  constraint channel_handles_platform_handle_hash_key UNIQUE (platform, handle_hash)
);

create table channel_heads (
  channel text not null,
  seq bigint not null,
  constraint channel_heads_pkey PRIMARY KEY (channel)
) with (fillfactor=70);

create table channel_names (
  platform text not null,
  platform_channel_id text not null,
  key_id uuid not null,
  sealed text not null,
  updated_at timestamp with time zone not null default clock_timestamp(),
  constraint channel_names_pkey PRIMARY KEY (platform, platform_channel_id)
);

create table channel_status (
  account_id uuid not null,
  platform text not null,
  broadcast_id text not null,
  channel_id text not null,
  is_online boolean not null,
  stream_title text,
  category text,
  live_chat_id text,
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  updated_at timestamp with time zone not null,
  reported_at timestamp with time zone,
  known_by text not null default 'report'::text,
  constraint channel_status_pkey PRIMARY KEY (account_id, platform, broadcast_id)
);
CREATE INDEX channel_status_looks ON public.channel_status
  USING btree (platform, updated_at) WHERE ((known_by = 'look'::text) AND (NOT is_online));
CREATE INDEX channel_status_online ON public.channel_status USING btree (platform) WHERE is_online;
CREATE INDEX channel_status_updated ON public.channel_status USING btree (updated_at);

create table chat_heads (
  account_id uuid not null,
  place bigint not null,
  constraint chat_heads_pkey PRIMARY KEY (account_id)
) with (fillfactor=50);

create table chat_message_counts (
  account_id uuid not null,
  platform text not null,
  day date not null,
  count bigint not null,
  constraint chat_message_counts_pkey PRIMARY KEY (account_id, platform, day)
) with (fillfactor=80);

create table chat_minute_counts (
  account_id uuid not null,
  platform text not null,
  since timestamp with time zone not null,
  live_chat_id text not null,
  person_key uuid not null,
  count bigint not null,
  emotes jsonb,
  constraint chat_minute_counts_pkey PRIMARY KEY (account_id, platform, since, live_chat_id, person_key)
);
CREATE INDEX chat_minute_counts_age ON public.chat_minute_counts USING btree (since);
CREATE INDEX chat_minute_counts_person ON public.chat_minute_counts USING btree (person_key) WHERE (emotes IS NOT NULL);

create table chat_sends (
  account_id uuid not null,
  id uuid not null,
  platform text not null,
  speaker_id uuid not null,
  asked_at timestamp with time zone not null default clock_timestamp(),
  status text not null default 'asked'::text,
  message_id text,
  channel_id text,
  speaker_hash text,
  text_hash text,
  echo_mark smallint,
  constraint chat_sends_pkey PRIMARY KEY (account_id, id),
  constraint chat_sends_status_check CHECK ((status = ANY (ARRAY['asked'::text, 'sent'::text, 'refused'::text, 'unknown'::text])))
);
CREATE INDEX chat_sends_asked ON public.chat_sends USING btree (asked_at);
CREATE INDEX chat_sends_message ON public.chat_sends
  USING btree (account_id, message_id) WHERE (message_id IS NOT NULL);
CREATE INDEX chat_sends_pace ON public.chat_sends USING btree (speaker_hash, channel_id, asked_at);
CREATE INDEX chat_sends_speaker ON public.chat_sends USING btree (speaker_id, asked_at);

create table chatters (
  account_id uuid not null,
  platform text not null,
  person_key uuid not null,
  first_received_at timestamp with time zone not null,
  constraint chatters_pkey PRIMARY KEY (account_id, person_key)
);

create table checkpoints (
  projection text not null,
  source text not null,
  partition integer not null,
  engine text not null,
  version integer not null,
  position text not null,
  updated_at timestamp with time zone not null default clock_timestamp(),
  silent_to text,
  built boolean not null default true,
  erasures bigint not null default 0,
  constraint checkpoints_pkey PRIMARY KEY (projection, source, partition)
) with (fillfactor=50);

create table connection_grants (
  connection_id uuid not null,
  account_id uuid,
  kind text not null,
  platform text not null,
  platform_user_id text not null,
  app text not null,
  client_id text not null,
  scopes text[] not null,
  expires_at timestamp with time zone,
  key_id uuid not null,
  sealed text not null,
  generation bigint not null default 1,
  stored_at timestamp with time zone not null default clock_timestamp(),
  after_refusal boolean not null default false,
  refreshing uuid,
  refreshing_until timestamp with time zone,
  dead boolean not null default false,
  subscriptions text[],
  subscription_problem text,
  constraint connection_grants_pkey PRIMARY KEY (connection_id)
);
CREATE INDEX connection_grants_account_idx ON public.connection_grants USING btree (account_id);
CREATE INDEX connection_grants_person_idx ON public.connection_grants USING btree (platform, platform_user_id);

create table connection_secrets (
  connection_id uuid not null,
  sealed text not null,
  changed_at timestamp with time zone not null default now(),
  constraint connection_secrets_pkey PRIMARY KEY (connection_id)
);

create table counted_events (
  account_id uuid not null,
  id uuid not null,
  platform text not null,
  type text not null,
  created_at timestamp with time zone not null,
  counts jsonb not null,
  constraint counted_events_pkey PRIMARY KEY (account_id, id)
);
CREATE INDEX counted_events_age ON public.counted_events USING btree (created_at);
CREATE INDEX counted_events_created ON public.counted_events USING btree (account_id, platform, created_at);

create table crawled_channels (
  platform text not null,
  platform_channel_id text not null,
  channel text not null,
  bio text,
  broadcaster_type text,
  read_at timestamp with time zone not null,
  constraint crawled_channels_pkey PRIMARY KEY (platform, platform_channel_id)
);
CREATE INDEX crawled_channels_channel ON public.crawled_channels USING btree (platform, channel);

create table crawled_profile_changes (
  id bigint not null generated always as identity,
  platform text not null,
  platform_channel_id text not null,
  change_type text not null,
  old_value jsonb,
  new_value jsonb,
  changed_at timestamp with time zone not null,
  constraint crawled_profile_changes_pkey PRIMARY KEY (id)
);
CREATE INDEX crawled_profile_changes_channel ON public.crawled_profile_changes
  USING btree (platform, platform_channel_id, changed_at DESC);

create table crawled_samples (
  platform text not null,
  platform_channel_id text not null,
  broadcast_id text not null,
  sampled_at timestamp with time zone not null,
  viewer_count bigint not null,
  constraint crawled_samples_pkey PRIMARY KEY (platform, broadcast_id, sampled_at)
);
CREATE INDEX crawled_samples_age ON public.crawled_samples USING btree (sampled_at);

create table crawled_streams (
  platform text not null,
  platform_channel_id text not null,
  broadcast_id text not null,
  title text,
  category text,
  started_at timestamp with time zone not null,
  last_seen_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  samples bigint not null,
  viewers bigint not null,
  peak_viewers bigint not null,
  constraint crawled_streams_pkey PRIMARY KEY (platform, broadcast_id)
);
CREATE INDEX crawled_streams_channel ON public.crawled_streams
  USING btree (platform, platform_channel_id, started_at DESC);
CREATE INDEX crawled_streams_live ON public.crawled_streams USING btree (platform) WHERE (ended_at IS NULL);

create table crawler_opt_outs (
  platform text not null,
  channel text not null,
  opted_out_at timestamp with time zone not null,
  constraint crawler_opt_outs_pkey PRIMARY KEY (platform, channel)
);

create table crawler_reads (
  platform text not null,
  channel text not null,
  read_at timestamp with time zone not null,
  constraint crawler_reads_pkey PRIMARY KEY (platform, channel)
);

create table crawler_scope (
  crawler_id text not null,
  enabled boolean not null,
  platforms text[] not null,
  constraint crawler_scope_pkey PRIMARY KEY (crawler_id)
);

create table crawler_watchlist (
  id uuid not null,
  platform text not null,
  channel text not null,
  added_at timestamp with time zone not null,
  constraint crawler_watchlist_pkey PRIMARY KEY (id)
);
CREATE INDEX crawler_watchlist_newest ON public.crawler_watchlist USING btree (added_at DESC, id);

create table credential_origins (
  credential_id uuid not null,
  kind text not null,
  account_id uuid not null,
  user_id uuid not null,
  session_id uuid not null,
  login_connection_id uuid,
  constraint credential_origins_pkey PRIMARY KEY (credential_id),
  constraint credential_origins_kind_check CHECK ((kind = ANY (ARRAY['api_key'::text, 'popout_token'::text])))
);
CREATE INDEX credential_origins_account ON public.credential_origins USING btree (account_id);
CREATE INDEX credential_origins_user ON public.credential_origins USING btree (user_id);

create table credential_uses (
  credential_id text not null,
  last_used_at timestamp with time zone not null,
  constraint credential_uses_pkey PRIMARY KEY (credential_id)
);

create table custom_bot_overrides (
  account_id uuid not null,
  allowed boolean not null,
  constraint custom_bot_overrides_pkey PRIMARY KEY (account_id)
);

create table dead_letters (
  id bigint not null generated always as identity,
  projection text not null,
  source text not null,
  partition integer not null,
  position text not null,
  stream text,
  revision bigint,
  type text,
  account_id text,
  record bytea,
  record_key text,
  headers json,
  event json,
  appended_at timestamp with time zone,
  reason text not null,
  error text not null,
  attempts integer not null default 1,
  status text not null default 'parked'::text,
  first_failed_at timestamp with time zone not null default clock_timestamp(),
  last_failed_at timestamp with time zone not null default clock_timestamp(),
  settled_at timestamp with time zone,
  relayed_to text,
  relayed_status text,
  relayed_attempts integer not null default 0,
  silent boolean not null default false,
  constraint dead_letters_pkey PRIMARY KEY (id),
  constraint dead_letters_projection_source_partition_position_key UNIQUE (projection, source, partition, "position"),
  constraint dead_letters_reason_check CHECK ((reason = ANY (ARRAY['poison'::text, 'undecodable'::text, 'blocked'::text]))),
  constraint dead_letters_status_check CHECK ((status = ANY (ARRAY['parked'::text, 'retried'::text, 'dropped'::text])))
);
CREATE INDEX dead_letters_lanes ON public.dead_letters
  USING btree (projection, COALESCE(NULLIF(account_id, 'global'::text), stream), id) WHERE (status = 'parked'::text);
CREATE INDEX dead_letters_parked ON public.dead_letters USING btree (projection, id) WHERE (status = 'parked'::text);
CREATE INDEX dead_letters_unrelayed ON public.dead_letters
  USING btree (id) WHERE ((relayed_status IS DISTINCT FROM status) OR (relayed_attempts <> attempts));
CREATE INDEX dead_letters_waiting_streams ON public.dead_letters
  USING btree (projection, stream, revision) WHERE ((status = 'parked'::text) AND (stream IS NOT NULL));

create table deleted_users (
  user_id uuid not null,
  deleted_at timestamp with time zone not null,
  constraint deleted_users_pkey PRIMARY KEY (user_id)
);

create table discord_buckets (
  key text not null,
  most integer not null,
  remaining integer not null,
  resets_at timestamp with time zone not null,
  window_ms integer not null,
  in_flight integer not null,
  taken_at timestamp with time zone not null,
  learned boolean not null default false,
  constraint discord_buckets_pkey PRIMARY KEY (key)
);
CREATE INDEX discord_buckets_reset ON public.discord_buckets USING btree (resets_at);

create table discord_guild_channels (
  connection_id uuid not null,
  account_id uuid not null,
  feature text not null,
  channel_id text not null,
  constraint discord_guild_channels_pkey PRIMARY KEY (connection_id, feature)
);
CREATE INDEX discord_guild_channels_feature ON public.discord_guild_channels USING btree (account_id, feature);

create table discord_guilds (
  connection_id uuid not null,
  account_id uuid not null,
  guild_id text not null,
  settings jsonb not null default '{}'::jsonb,
  constraint discord_guilds_pkey PRIMARY KEY (connection_id)
);
CREATE INDEX discord_guilds_account ON public.discord_guilds USING btree (account_id);

create table discord_posts (
  account_id uuid not null,
  id uuid not null,
  status text not null default 'asked'::text,
  message_id text,
  asked_at timestamp with time zone not null default clock_timestamp(),
  constraint discord_posts_pkey PRIMARY KEY (account_id, id),
  constraint discord_posts_status_check CHECK ((status = ANY (ARRAY['asked'::text, 'sent'::text, 'refused'::text, 'unknown'::text])))
);
CREATE INDEX discord_posts_asked ON public.discord_posts USING btree (asked_at);

create table discord_routes (
  route text not null,
  bucket text not null,
  constraint discord_routes_pkey PRIMARY KEY (route)
);

create table discord_shards (
  one boolean not null default true,
  shards integer not null,
  constraint discord_shards_pkey PRIMARY KEY (one),
  constraint discord_shards_one_check CHECK (one),
  constraint discord_shards_shards_check CHECK ((shards > 0))
);

create table discord_slash_commands (
  connection_id uuid not null,
  account_id uuid not null,
  skipped text[] not null,
  hash text not null default ''::text,
  tried_at timestamp with time zone,
  constraint discord_slash_commands_pkey PRIMARY KEY (connection_id)
);

create table dissolved_accounts (
  account_id uuid not null,
  constraint dissolved_accounts_pkey PRIMARY KEY (account_id)
);

create table domain_events (
  position bigint not null,
  stream text collate "C" not null,
  revision bigint not null,
  id uuid not null,
  type text collate "C" not null,
  data json not null,
  metadata json not null,
  recorded_at timestamp with time zone not null,
  constraint domain_events_pkey PRIMARY KEY ("position"),
  constraint domain_events_id_key UNIQUE (id),
  constraint domain_events_stream_revision_key UNIQUE (stream, revision)
);

create table emitted_bytes (
  account_id uuid not null,
  day date not null,
  bytes bigint not null,
  constraint emitted_bytes_pkey PRIMARY KEY (account_id)
);

create table erased_channels (
  hash text not null,
  constraint erased_channels_pkey PRIMARY KEY (hash)
);

create table erased_shared_messages (
  id uuid not null,
  account_id uuid not null,
  constraint erased_shared_messages_pkey PRIMARY KEY (id)
);
CREATE INDEX erased_shared_messages_account ON public.erased_shared_messages USING btree (account_id);

create table erased_uses (
  account_id uuid not null,
  platform text not null,
  since timestamp with time zone not null,
  live_chat_id text not null,
  person_key uuid not null,
  emotes jsonb not null,
  constraint erased_uses_pkey PRIMARY KEY (account_id, platform, since, live_chat_id, person_key)
);
CREATE INDEX erased_uses_age ON public.erased_uses USING btree (since);

create table event_log_counters (
  account_id uuid not null,
  type text not null,
  platform text not null,
  day date not null,
  count bigint not null,
  constraint event_log_counters_pkey PRIMARY KEY (account_id, type, platform, day)
) with (fillfactor=70);

create table feature_flags (
  key text not null,
  enabled boolean not null,
  changed_at timestamp with time zone not null,
  constraint feature_flags_pkey PRIMARY KEY (key)
);

create table feature_flags_before_events (
  key text not null,
  enabled boolean not null,
  changed_at timestamp with time zone not null,
  constraint feature_flags_before_events_pkey PRIMARY KEY (key)
);

create table finished_jobs (
  key text not null,
  finished_at timestamp with time zone not null default now(),
  kept_until timestamp with time zone,
  constraint finished_jobs_pkey PRIMARY KEY (key)
);
CREATE INDEX finished_jobs_kept_until ON public.finished_jobs USING btree (kept_until) WHERE (kept_until IS NOT NULL);

create table former_logins (
  user_id uuid not null,
  provider text not null,
  provider_account_id text not null,
  ended_at timestamp with time zone not null default clock_timestamp(),
  constraint former_logins_pkey PRIMARY KEY (user_id, provider, provider_account_id)
);
CREATE INDEX former_logins_account ON public.former_logins USING btree (provider, provider_account_id);

create table idempotency_keys (
  id bytea not null,
  request_hash bytea not null,
  seed bytea not null,
  answer bytea,
  created_at timestamp with time zone not null default now(),
  locked_until timestamp with time zone not null,
  holder bigint,
  user_id text,
  constraint idempotency_keys_pkey PRIMARY KEY (id)
);
CREATE INDEX idempotency_keys_created_at ON public.idempotency_keys USING btree (created_at);
CREATE INDEX idempotency_keys_user ON public.idempotency_keys USING btree (user_id) WHERE (user_id IS NOT NULL);

create table ingest_dead_letters (
  id uuid not null,
  vendor text not null,
  reason text not null,
  detail text not null,
  headers jsonb not null,
  raw_body bytea not null,
  delivery_key text not null,
  trace text,
  status text not null default 'parked'::text,
  attempts integer not null default 1,
  first_received_at timestamp with time zone not null,
  last_received_at timestamp with time zone not null,
  settled_at timestamp with time zone,
  key_id uuid,
  constraint ingest_dead_letters_pkey PRIMARY KEY (id),
  constraint ingest_dead_letters_delivery_key_key UNIQUE (delivery_key),
  constraint ingest_dead_letters_status_check CHECK ((status = ANY (ARRAY['parked'::text, 'retried'::text, 'dropped'::text])))
);
CREATE INDEX ingest_dead_letters_parked ON public.ingest_dead_letters USING btree (id) WHERE (status = 'parked'::text);

create view ingested_bodies as
 SELECT account_id,
    body,
    record_id,
    taken_at,
    projection
   FROM ledger_bodies
  WHERE (projection = 'event-log'::text);

create view ingested_ids as
 SELECT account_id,
    topic,
    external_id,
    record_id,
    projection,
    taken_at
   FROM ledger
  WHERE (projection = 'event-log'::text);

create table installation (
  name text not null,
  value text not null,
  constraint installation_pkey PRIMARY KEY (name)
);

create table job_holders (
  pool text not null,
  lock bigint not null,
  dead_since timestamp with time zone,
  constraint job_holders_pkey PRIMARY KEY (pool)
);

create table kick_first_subscriptions (
  channel_id text not null,
  type text not null,
  subscription_id text not null,
  seen_at timestamp with time zone not null,
  constraint kick_first_subscriptions_pkey PRIMARY KEY (channel_id, type)
);

create table lake_erasures (
  engine text not null,
  topic text not null,
  partition integer not null,
  from_offset bigint not null,
  to_offset bigint not null,
  constraint lake_erasures_pkey PRIMARY KEY (engine, topic, partition, from_offset, to_offset)
);

create table lake_files (
  engine text not null,
  topic text not null,
  partition integer not null,
  day date not null,
  from_offset bigint not null,
  to_offset bigint not null,
  version bigint not null default 1,
  written_version bigint not null default 0,
  rewrite_at timestamp with time zone not null default '-infinity'::timestamp with time zone,
  persons text not null,
  accounts uuid[] not null default '{}'::uuid[],
  constraint lake_files_pkey PRIMARY KEY (engine, topic, partition, day)
);
CREATE INDEX lake_files_accounts ON public.lake_files USING gin (accounts);
CREATE INDEX lake_files_offsets ON public.lake_files USING btree (topic, partition, from_offset, to_offset);

create table late_spans (
  id bigint not null generated always as identity,
  account_id uuid not null,
  since timestamp with time zone not null,
  until timestamp with time zone not null,
  constraint late_spans_pkey PRIMARY KEY (id)
);

create table leases (
  name text not null,
  holder text not null,
  token bigint not null,
  expires_at timestamp with time zone not null,
  constraint leases_pkey PRIMARY KEY (name)
);

create table ledger (
  projection text not null,
  topic text not null,
  account_id uuid not null,
  external_id text not null,
  record_id uuid not null,
  taken_at timestamp with time zone not null default now()
) partition by RANGE (taken_at);

create table ledger_before partition of ledger FOR VALUES FROM (MINVALUE) TO ('2020-01-01 00:00:00+00');
CREATE TRIGGER ledger_taken_later BEFORE INSERT ON public.ledger_before FOR EACH ROW EXECUTE FUNCTION ledger_taken_later();

create table ledger_bodies (
  projection text not null,
  account_id uuid not null,
  body text collate "C" not null,
  record_id uuid not null,
  taken_at timestamp with time zone not null default now(),
  constraint ledger_bodies_pkey PRIMARY KEY (account_id, body, projection)
);
CREATE INDEX ledger_bodies_age ON public.ledger_bodies USING btree (taken_at);

create table ledger_default partition of ledger DEFAULT;
CREATE UNIQUE INDEX ledger_default_account_id_external_id_projection_topic_idx ON public.ledger_default
  USING btree (account_id, external_id, projection, topic);

create table live_session_figures (
  session_id uuid not null,
  account_id uuid not null,
  counted_at timestamp with time zone not null,
  next_at timestamp with time zone not null,
  duration_secs bigint not null,
  peak_viewers bigint,
  avg_viewers double precision,
  total_messages bigint not null,
  unique_chatters bigint not null,
  new_followers bigint,
  figures jsonb not null,
  constraint live_session_figures_pkey PRIMARY KEY (session_id)
);
CREATE INDEX live_session_figures_next ON public.live_session_figures USING btree (next_at);

create table login_connections (
  id uuid not null,
  user_id uuid not null,
  provider text not null,
  reconnect_required boolean not null default false,
  connected_at timestamp with time zone not null,
  constraint login_connections_pkey PRIMARY KEY (id)
);
CREATE INDEX login_connections_user_idx ON public.login_connections USING btree (user_id, connected_at, id);

create table login_grants (
  login_connection_id uuid not null,
  user_id uuid not null,
  provider_account_id text not null,
  username text,
  display_name text,
  avatar_url text,
  scopes text[] not null,
  token_expires_at timestamp with time zone,
  sealed text not null,
  updated_at timestamp with time zone not null default clock_timestamp(),
  constraint login_grants_pkey PRIMARY KEY (login_connection_id)
);
CREATE INDEX login_grants_user_idx ON public.login_grants USING btree (user_id);
CREATE INDEX login_grants_username ON public.login_grants
  USING btree (lower(username) text_pattern_ops) WHERE (username IS NOT NULL);

create table login_places (
  login_connection_id uuid not null,
  account_id uuid not null,
  constraint login_places_pkey PRIMARY KEY (login_connection_id, account_id)
);
CREATE INDEX login_places_account ON public.login_places USING btree (account_id);

create table lost_logins (
  login_connection_id uuid not null,
  user_id uuid not null,
  constraint lost_logins_pkey PRIMARY KEY (login_connection_id)
);

create table member_keys (
  key_id uuid not null,
  account_id uuid not null,
  user_id uuid not null,
  constraint member_keys_pkey PRIMARY KEY (key_id)
);
CREATE INDEX member_keys_member ON public.member_keys USING btree (account_id, user_id);

create table member_tokens (
  token_id uuid not null,
  account_id uuid not null,
  user_id uuid not null,
  constraint member_tokens_pkey PRIMARY KEY (token_id, user_id)
);
CREATE INDEX member_tokens_member ON public.member_tokens USING btree (account_id, user_id);

create table memberships_to_end (
  user_id uuid not null,
  account_id uuid not null,
  constraint memberships_to_end_pkey PRIMARY KEY (user_id, account_id)
);
CREATE INDEX memberships_to_end_account ON public.memberships_to_end USING btree (account_id);

create table merged_sessions (
  session_id uuid not null,
  account_id uuid not null,
  into_id uuid not null,
  constraint merged_sessions_pkey PRIMARY KEY (session_id)
);
CREATE INDEX merged_sessions_account ON public.merged_sessions USING btree (account_id);
CREATE INDEX merged_sessions_into ON public.merged_sessions USING btree (into_id);

create table moderation_log (
  account_id uuid not null,
  place bigint not null,
  id uuid not null,
  created_at timestamp with time zone not null,
  platform text not null,
  action text not null,
  person_key uuid,
  message_id text,
  effect text,
  is_listed boolean not null,
  twin_of uuid,
  content json not null,
  constraint moderation_log_pkey PRIMARY KEY (account_id, place)
);
CREATE UNIQUE INDEX moderation_log_ids ON public.moderation_log USING btree (id);
CREATE INDEX moderation_log_message ON public.moderation_log
  USING btree (account_id, message_id) WHERE (message_id IS NOT NULL);
CREATE INDEX moderation_log_person ON public.moderation_log
  USING btree (account_id, person_key, created_at) WHERE (person_key IS NOT NULL);
CREATE INDEX moderation_log_twins ON public.moderation_log USING btree (twin_of) WHERE (twin_of IS NOT NULL);

create table oauth_clients (
  client_id uuid not null,
  name text not null,
  client_type text not null,
  account_id uuid,
  redirect_uris text[] not null,
  scopes text[] not null,
  grant_types text[] not null,
  enabled boolean not null,
  secret_hash text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint oauth_clients_pkey PRIMARY KEY (client_id)
);
CREATE INDEX oauth_clients_newest ON public.oauth_clients USING btree (created_at DESC, client_id DESC);

create table oauth_codes (
  code_hash text not null,
  grant_id uuid not null,
  client_id uuid not null,
  user_id uuid not null,
  account_id uuid not null,
  session_id uuid not null,
  redirect_uri text not null,
  scopes text[] not null,
  code_challenge text not null,
  expires_at timestamp with time zone not null,
  used_at timestamp with time zone,
  grant_ends_at timestamp with time zone not null,
  constraint oauth_codes_pkey PRIMARY KEY (code_hash)
);
CREATE INDEX oauth_codes_kept ON public.oauth_codes
  USING btree ((
CASE
    WHEN (used_at IS NULL) THEN expires_at
    ELSE grant_ends_at
END));
CREATE INDEX oauth_codes_user_idx ON public.oauth_codes USING btree (user_id, client_id, expires_at);

create table oauth_grants (
  id uuid not null,
  client_id uuid not null,
  user_id uuid not null,
  account_id uuid not null,
  session_id uuid not null,
  scopes text[] not null,
  refresh_jti_hash text,
  begun_at timestamp with time zone not null,
  refreshed_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint oauth_grants_pkey PRIMARY KEY (id)
);
CREATE INDEX oauth_grants_client ON public.oauth_grants USING btree (client_id);
CREATE INDEX oauth_grants_expiry ON public.oauth_grants USING btree (expires_at);
CREATE INDEX oauth_grants_user_idx ON public.oauth_grants USING btree (user_id, client_id, refreshed_at);

create table oauth_states (
  state_hash text not null,
  user_id uuid not null,
  account_id uuid,
  platform text not null,
  kind text not null,
  app text not null,
  client_id text not null,
  return_to text not null,
  sealed text not null,
  expires_at timestamp with time zone not null,
  used_by text,
  connection_id uuid,
  created_at timestamp with time zone not null default clock_timestamp(),
  constraint oauth_states_pkey PRIMARY KEY (state_hash)
);
CREATE INDEX oauth_states_expiry_idx ON public.oauth_states USING btree (expires_at);
CREATE INDEX oauth_states_user_idx ON public.oauth_states USING btree (user_id, created_at);

create table opted_out_handles (
  platform text not null,
  platform_channel_id text not null,
  channel text not null,
  constraint opted_out_handles_pkey PRIMARY KEY (platform, platform_channel_id)
);

create table outbox (
  id bigint not null default nextval('outbox_ids'::regclass),
  channel text not null,
  seq bigint not null,
  event_type text not null,
  data text not null,
  created_at timestamp with time zone not null,
  trace text,
  shard integer not null default 64,
  name_hash integer
) partition by RANGE (created_at);

create table outbox_default partition of outbox DEFAULT;
CREATE UNIQUE INDEX outbox_default_channel_seq ON public.outbox_default USING btree (channel, seq);
CREATE INDEX outbox_default_id ON public.outbox_default USING btree (id);
CREATE INDEX outbox_default_shard_id ON public.outbox_default USING btree (shard, id);

create table outbox_heads (
  shard integer not null,
  id bigint not null,
  constraint outbox_heads_pkey PRIMARY KEY (shard)
) with (fillfactor=10);

create sequence outbox_ids;

create table overlay_access (
  id uuid not null,
  overlay_id uuid not null,
  account_id uuid not null,
  user_id uuid not null,
  role text not null,
  granted_by uuid,
  created_at timestamp with time zone not null,
  constraint overlay_access_pkey PRIMARY KEY (overlay_id, user_id)
);
CREATE INDEX overlay_access_account ON public.overlay_access USING btree (account_id, user_id);

create table overlay_folders (
  id uuid not null,
  account_id uuid not null,
  parent_id uuid,
  name text not null,
  created_at timestamp with time zone not null,
  constraint overlay_folders_pkey PRIMARY KEY (id)
);
CREATE INDEX overlay_folders_account ON public.overlay_folders USING btree (account_id, created_at, id);

create table overlay_layers (
  overlay_id uuid not null,
  id uuid not null,
  type text not null,
  name text not null,
  config jsonb not null,
  visible boolean not null,
  sort_order integer not null,
  locked boolean not null,
  constraint overlay_layers_pkey PRIMARY KEY (overlay_id, id)
);

create table overlay_tokens (
  id uuid not null,
  kind text not null,
  token_hash text not null,
  account_id uuid not null,
  resource_id uuid not null,
  channel text not null,
  install_grants text[] not null default '{}'::text[],
  is_listed boolean not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone,
  constraint overlay_tokens_pkey PRIMARY KEY (id),
  constraint overlay_tokens_kind_check CHECK ((kind = ANY (ARRAY['overlay'::text, 'shared_overlay'::text]))),
  constraint overlay_tokens_token_hash_key UNIQUE (token_hash)
);
CREATE INDEX overlay_tokens_account ON public.overlay_tokens USING btree (account_id);
CREATE INDEX overlay_tokens_resource ON public.overlay_tokens USING btree (resource_id);

create table overlays (
  id uuid not null,
  account_id uuid not null,
  folder_id uuid,
  name text not null,
  key text not null,
  width integer not null,
  height integer not null,
  background text not null,
  revision bigint not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  alerts_paused boolean not null default false,
  alerts_muted boolean not null default false,
  constraint overlays_pkey PRIMARY KEY (id),
  constraint overlays_key_key UNIQUE (key)
);
CREATE INDEX overlays_account ON public.overlays USING btree (account_id, created_at, id);

create table payment_objects (
  vendor text not null,
  source text not null,
  object_id text not null,
  kind text not null,
  connected_account text,
  customer text,
  livemode boolean not null,
  status text,
  ended boolean not null,
  happened_at timestamp with time zone not null,
  rank bigint not null,
  facts jsonb not null,
  event_type text not null,
  record_id uuid not null,
  constraint payment_objects_pkey PRIMARY KEY (vendor, source, object_id)
);
CREATE INDEX payment_objects_customer ON public.payment_objects USING btree (customer);
CREATE INDEX payment_objects_record ON public.payment_objects USING btree (record_id);

create table pending_session_merges (
  younger_id uuid not null,
  older_id uuid not null,
  account_id uuid not null,
  constraint pending_session_merges_pkey PRIMARY KEY (younger_id)
);
CREATE INDEX pending_session_merges_older ON public.pending_session_merges USING btree (older_id);

create table plan_features (
  plan_id uuid not null,
  flag text not null,
  enabled boolean not null,
  constraint plan_features_pkey PRIMARY KEY (plan_id, flag)
);

create table plan_flags_to_adopt (
  plan_id uuid not null,
  flag text not null,
  constraint plan_flags_to_adopt_pkey PRIMARY KEY (plan_id, flag)
);

create table plans (
  id uuid not null,
  slug text not null,
  name text not null,
  description text,
  price_monthly bigint not null,
  price_yearly bigint not null,
  currency text not null,
  is_public boolean not null,
  sort_order bigint not null,
  limits jsonb not null,
  stripe_product_id text,
  stripe_monthly_price_id text,
  stripe_yearly_price_id text,
  created_at timestamp with time zone not null,
  constraint plans_pkey PRIMARY KEY (id)
);
CREATE INDEX plans_slug ON public.plans USING btree (slug);

create table platform_chat_messages (
  account_id uuid not null,
  platform text not null,
  place bigint not null,
  id uuid not null,
  created_at timestamp with time zone not null,
  person_key uuid,
  message_id text,
  live_chat_id text,
  message text not null,
  content json,
  is_first boolean not null,
  is_paid boolean not null,
  has_link boolean not null,
  has_emote boolean not null,
  is_late boolean not null,
  constraint platform_chat_messages_pkey PRIMARY KEY (account_id, platform, place)
);
CREATE UNIQUE INDEX platform_chat_messages_ids ON public.platform_chat_messages USING btree (id);
CREATE INDEX platform_chat_messages_late ON public.platform_chat_messages
  USING btree (account_id, platform, place) WHERE is_late;
CREATE INDEX platform_chat_messages_live_chat ON public.platform_chat_messages
  USING btree (account_id, live_chat_id, place) WHERE (live_chat_id IS NOT NULL);
CREATE INDEX platform_chat_messages_message ON public.platform_chat_messages
  USING btree (account_id, message_id) WHERE (message_id IS NOT NULL);
CREATE INDEX platform_chat_messages_paid ON public.platform_chat_messages
  USING btree (account_id, platform, place) WHERE is_paid;
CREATE INDEX platform_chat_messages_person ON public.platform_chat_messages
  USING btree (account_id, person_key, place) WHERE (person_key IS NOT NULL);

create table platform_event_logs (
  id uuid not null,
  account_id uuid not null,
  type text not null,
  platform text not null,
  external_id text,
  user_id text,
  raw json not null,
  created_at timestamp with time zone not null,
  constraint platform_event_logs_pkey PRIMARY KEY (id, created_at),
  constraint platform_event_logs_type_check CHECK ((char_length(type) <= 100))
) partition by RANGE (created_at);
CREATE UNIQUE INDEX platform_event_logs_external_id ON ONLY public.platform_event_logs
  USING btree (account_id, external_id, created_at) WHERE (external_id IS NOT NULL);
CREATE INDEX platform_event_logs_newest ON ONLY public.platform_event_logs
  USING btree (account_id, created_at DESC, id DESC);
CREATE INDEX platform_event_logs_type ON ONLY public.platform_event_logs
  USING btree (account_id, type, platform, created_at DESC, id DESC);
CREATE INDEX platform_event_logs_user ON ONLY public.platform_event_logs
  USING btree (account_id, user_id, created_at DESC, id DESC) INCLUDE (type, platform) WHERE (user_id IS NOT NULL);

create table platform_event_logs_default partition of platform_event_logs DEFAULT;

create table platform_user_details (
  account_id uuid not null,
  person_key uuid not null,
  avatar_url text,
  description text,
  account_created_at timestamp with time zone,
  broadcaster_type text,
  is_follower boolean,
  followed_at timestamp with time zone,
  enriched_at timestamp with time zone,
  tried_at timestamp with time zone not null,
  details_at timestamp with time zone,
  fetch_after timestamp with time zone,
  is_subscriber boolean,
  constraint platform_user_details_pkey PRIMARY KEY (account_id, person_key)
);
CREATE INDEX platform_user_details_person ON public.platform_user_details USING btree (person_key);

create table platform_user_notes (
  id uuid not null,
  account_id uuid not null,
  platform text not null,
  platform_user_id text not null,
  text text not null,
  created_by uuid,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint platform_user_notes_pkey PRIMARY KEY (id)
);
CREATE INDEX platform_user_notes_person ON public.platform_user_notes
  USING btree (platform_user_id, platform, account_id, created_at DESC);

create table platform_user_refreshes (
  account_id uuid not null,
  person_key uuid not null,
  refreshed_at timestamp with time zone not null,
  constraint platform_user_refreshes_pkey PRIMARY KEY (account_id, person_key)
);
CREATE INDEX platform_user_refreshes_at ON public.platform_user_refreshes USING btree (refreshed_at);

create table platform_users (
  account_id uuid not null,
  person_key uuid not null,
  platform text not null,
  platform_user_id text,
  username text,
  display_name text,
  avatar_url text,
  roles text[] not null,
  first_seen_at timestamp with time zone not null,
  last_seen_at timestamp with time zone not null,
  message_count bigint not null,
  own_messages bigint not null,
  identity_hash text,
  constraint platform_users_pkey PRIMARY KEY (account_id, person_key)
) with (fillfactor=80);
CREATE INDEX platform_users_identity ON public.platform_users
  USING btree (identity_hash) WHERE (identity_hash IS NOT NULL);
CREATE INDEX platform_users_ids ON public.platform_users
  USING btree (account_id, platform, platform_user_id) WHERE (platform_user_id IS NOT NULL);
CREATE INDEX platform_users_person ON public.platform_users USING btree (person_key);
CREATE INDEX platform_users_unhashed ON public.platform_users
  USING btree (account_id, person_key) WHERE ((identity_hash IS NULL) AND (platform_user_id IS NOT NULL));

create table popout_tokens (
  id uuid not null,
  account_id uuid not null,
  user_id uuid,
  created_by uuid not null,
  token_hash text not null,
  token_prefix text not null,
  label text,
  permissions text[] not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  constraint popout_tokens_pkey PRIMARY KEY (id),
  constraint popout_tokens_token_hash_key UNIQUE (token_hash)
);
CREATE INDEX popout_tokens_account ON public.popout_tokens USING btree (account_id, created_at DESC, id DESC);

create table profiles (
  user_id uuid not null,
  display_name text not null,
  avatar_url text,
  updated_at timestamp with time zone not null default clock_timestamp(),
  email text,
  constraint profiles_pkey PRIMARY KEY (user_id)
);
CREATE INDEX profiles_name ON public.profiles USING btree (lower(display_name) text_pattern_ops);
CREATE INDEX profiles_pieces ON public.profiles
  USING gin (text_pieces(((display_name || ' '::text) || COALESCE(email, ''::text))));

create table projection_build_places (
  projection text not null,
  partition integer not null,
  position text not null,
  records bigint not null,
  updated_at timestamp with time zone not null default clock_timestamp(),
  constraint projection_build_places_pkey PRIMARY KEY (projection, partition)
) with (fillfactor=50);

create table projection_builds (
  projection text not null,
  version integer not null,
  engine text not null,
  program text not null,
  token uuid not null,
  loading boolean not null default true,
  started_at timestamp with time zone not null default clock_timestamp(),
  constraint projection_builds_pkey PRIMARY KEY (projection)
);

create table projection_states (
  projection text not null,
  holder uuid not null,
  version integer not null,
  state text not null,
  rate real not null,
  observed_at timestamp with time zone not null default clock_timestamp(),
  constraint projection_states_pkey PRIMARY KEY (projection, holder)
) with (fillfactor=50);

create table public_channel_stats (
  platform text not null,
  platform_channel_id text not null,
  stream_count bigint not null,
  total_duration_secs bigint not null,
  peak_viewers bigint,
  avg_viewers double precision,
  total_messages bigint not null,
  last_streamed_at timestamp with time zone not null,
  constraint public_channel_stats_pkey PRIMARY KEY (platform, platform_channel_id)
);

create table public_channels (
  account_id uuid not null,
  platform text not null,
  platform_channel_id text not null,
  is_public boolean not null,
  show_top_chatters boolean not null,
  opted_out_via text,
  updated_at timestamp with time zone not null,
  constraint public_channels_pkey PRIMARY KEY (account_id, platform, platform_channel_id)
);
CREATE INDEX public_channels_channel ON public.public_channels USING btree (platform, platform_channel_id);

create table public_stream_categories (
  platform text not null,
  broadcast_id text not null,
  account_id uuid not null,
  platform_channel_id text not null,
  session_id uuid not null,
  started_at timestamp with time zone not null,
  category text not null,
  duration_secs bigint not null,
  avg_viewers double precision not null,
  constraint public_stream_categories_pkey PRIMARY KEY (platform, broadcast_id, account_id, category)
);
CREATE INDEX public_stream_categories_account ON public.public_stream_categories USING btree (account_id);
CREATE INDEX public_stream_categories_session ON public.public_stream_categories USING btree (session_id);
CREATE INDEX public_stream_categories_started ON public.public_stream_categories USING btree (started_at);

create table public_stream_emotes (
  platform text not null,
  broadcast_id text not null,
  account_id uuid not null,
  platform_channel_id text not null,
  session_id uuid not null,
  started_at timestamp with time zone not null,
  provider text not null,
  id text not null,
  name text not null,
  url text,
  count bigint not null,
  constraint public_stream_emotes_pkey PRIMARY KEY (platform, broadcast_id, account_id, provider, id)
);
CREATE INDEX public_stream_emotes_account ON public.public_stream_emotes USING btree (account_id);
CREATE INDEX public_stream_emotes_session ON public.public_stream_emotes USING btree (session_id);
CREATE INDEX public_stream_emotes_started ON public.public_stream_emotes USING btree (started_at);

create table public_streams (
  account_id uuid not null,
  platform text not null,
  broadcast_id text not null,
  platform_channel_id text not null,
  session_id uuid not null,
  started_at timestamp with time zone not null,
  ended_at timestamp with time zone not null,
  duration_secs bigint not null,
  peak_viewers bigint,
  avg_viewers double precision,
  total_messages bigint not null,
  follower_count bigint,
  title text,
  category text,
  figures jsonb not null,
  constraint public_streams_pkey PRIMARY KEY (platform, broadcast_id, account_id)
);
CREATE INDEX public_streams_account ON public.public_streams USING btree (account_id);
CREATE INDEX public_streams_channel ON public.public_streams
  USING btree (platform, platform_channel_id, started_at DESC);
CREATE INDEX public_streams_session ON public.public_streams USING btree (session_id);

create table revocations (
  id bigint not null generated always as identity,
  credential_id text,
  user_id text,
  account_id text,
  recorded_at timestamp with time zone not null default clock_timestamp(),
  constraint revocations_pkey PRIMARY KEY (id)
);
CREATE INDEX revocations_age_idx ON public.revocations USING btree (recorded_at);
CREATE INDEX revocations_credential_idx ON public.revocations
  USING btree (credential_id) WHERE (credential_id IS NOT NULL);

create table rewards (
  id uuid not null,
  account_id uuid not null,
  platform text not null,
  platform_reward_id text,
  title text not null,
  cost integer,
  enabled boolean not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  action json not null default '{}'::json,
  constraint rewards_pkey PRIMARY KEY (id)
);
CREATE INDEX rewards_account ON public.rewards USING btree (account_id, created_at, id);
CREATE INDEX rewards_platform_reward ON public.rewards
  USING btree (account_id, platform_reward_id) WHERE (platform_reward_id IS NOT NULL);

create table running_exports (
  account_id uuid not null,
  token uuid not null,
  ends_at timestamp with time zone not null,
  constraint running_exports_pkey PRIMARY KEY (account_id)
);

create table schema_migrations (
  id integer not null default nextval('schema_migrations_id_seq'::regclass),
  name character varying(255),
  batch integer,
  migration_time timestamp with time zone,
  constraint schema_migrations_pkey PRIMARY KEY (id)
);

create sequence schema_migrations_id_seq;

create table schema_migrations_lock (
  index integer not null default nextval('schema_migrations_lock_index_seq'::regclass),
  is_locked integer,
  constraint schema_migrations_lock_pkey PRIMARY KEY (index)
);

create sequence schema_migrations_lock_index_seq;

create table se_token_secrets (
  token_id uuid not null,
  sealed text not null,
  refused boolean not null default false,
  saved_at timestamp with time zone not null default clock_timestamp(),
  constraint se_token_secrets_pkey PRIMARY KEY (token_id)
);

create table se_tokens (
  id uuid not null,
  account_id uuid not null,
  platform text not null,
  label text not null,
  created_at timestamp with time zone not null,
  saved_at timestamp with time zone not null,
  constraint se_tokens_pkey PRIMARY KEY (id),
  constraint se_tokens_account_id_platform_key UNIQUE (account_id, platform)
);

create table service_keys (
  id uuid not null,
  account_id uuid not null,
  created_by uuid,
  key_hash text not null,
  key_prefix text not null,
  label text not null,
  permissions text[] not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  expires_at timestamp with time zone,
  constraint service_keys_pkey PRIMARY KEY (id),
  constraint service_keys_key_hash_key UNIQUE (key_hash)
);
CREATE INDEX service_keys_account ON public.service_keys USING btree (account_id, created_at DESC, id DESC);

create table session_claims (
  account_id uuid not null,
  platform text not null,
  broadcast_id text not null,
  session_id uuid not null,
  is_begun boolean not null default false,
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  grace_ms bigint,
  is_deleted boolean not null default false,
  constraint session_claims_pkey PRIMARY KEY (account_id, platform, broadcast_id)
);
CREATE INDEX session_claims_broadcast ON public.session_claims USING btree (platform, broadcast_id);
CREATE INDEX session_claims_open ON public.session_claims USING btree (session_id) WHERE (NOT is_begun);
CREATE INDEX session_claims_session ON public.session_claims USING btree (session_id);

create table session_links (
  id uuid not null,
  session_id uuid not null,
  account_id uuid not null,
  token_hash text not null,
  password_hash text,
  allow_export boolean not null,
  created_by uuid,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  constraint session_links_pkey PRIMARY KEY (id),
  constraint session_links_token_hash_key UNIQUE (token_hash)
);
CREATE INDEX session_links_account ON public.session_links USING btree (account_id);
CREATE INDEX session_links_session ON public.session_links USING btree (session_id);

create table session_row_counts (
  session_id uuid not null,
  account_id uuid not null,
  counted_ms bigint not null,
  chat_rows bigint not null,
  other_rows bigint not null,
  constraint session_row_counts_pkey PRIMARY KEY (session_id)
);

create table session_streams (
  session_id uuid not null,
  account_id uuid not null,
  platform text not null,
  platform_channel_id text not null,
  broadcast_id text not null,
  title text,
  category text,
  started_at timestamp with time zone not null,
  constraint session_streams_pkey PRIMARY KEY (session_id, platform, broadcast_id)
);
CREATE INDEX session_streams_account ON public.session_streams USING btree (account_id);
CREATE INDEX session_streams_channel ON public.session_streams USING btree (platform, platform_channel_id);

create table sessions (
  id uuid not null,
  user_id uuid not null,
  refresh_jti_hash text not null,
  created_at timestamp with time zone not null,
  refreshed_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  previous_jti_hash text,
  login_connection_id uuid,
  constraint sessions_pkey PRIMARY KEY (id),
  constraint sessions_refresh_jti_hash_key UNIQUE (refresh_jti_hash)
);
CREATE INDEX sessions_expiry_idx ON public.sessions USING btree (expires_at);
CREATE INDEX sessions_login_idx ON public.sessions
  USING btree (login_connection_id) WHERE (login_connection_id IS NOT NULL);
CREATE INDEX sessions_user_idx ON public.sessions USING btree (user_id);

create table shop_connections (
  id uuid not null,
  account_id uuid not null,
  shop_domain text not null,
  connected_at timestamp with time zone not null,
  constraint shop_connections_pkey PRIMARY KEY (id),
  constraint shop_connections_shop_domain_key UNIQUE (shop_domain)
);
CREATE INDEX shop_connections_account_idx ON public.shop_connections USING btree (account_id);

create table signing_keys (
  kid text not null,
  public_jwk jsonb not null,
  private_sealed text not null,
  created_at timestamp with time zone not null default now(),
  signs_from timestamp with time zone not null default now(),
  verifies_until timestamp with time zone,
  constraint signing_keys_pkey PRIMARY KEY (kid)
);

create table sounds (
  id uuid not null,
  account_id uuid not null,
  name text not null,
  filename text not null,
  content_type text not null,
  size_bytes bigint not null,
  duration_ms bigint,
  waveform jsonb,
  blob_key text not null,
  sha256 text not null,
  created_at timestamp with time zone not null,
  constraint sounds_pkey PRIMARY KEY (id)
);
CREATE INDEX sounds_account ON public.sounds USING btree (account_id, created_at DESC, id);
CREATE INDEX sounds_blob ON public.sounds USING btree (blob_key);

create table stream_samples (
  account_id uuid not null,
  platform text not null,
  broadcast_id text not null,
  sampled_at timestamp with time zone not null,
  viewer_count bigint not null,
  follower_count bigint,
  stream_title text,
  category text,
  constraint stream_samples_pkey PRIMARY KEY (account_id, platform, broadcast_id, sampled_at),
  constraint stream_samples_follower_count_check CHECK ((follower_count >= 0)),
  constraint stream_samples_viewer_count_check CHECK ((viewer_count >= 0))
) partition by RANGE (sampled_at);

create table stream_samples_default partition of stream_samples DEFAULT;

create table stream_sessions (
  id uuid not null,
  account_id uuid not null,
  is_live boolean not null,
  title text,
  titles text[] not null,
  platforms text[] not null,
  categories text[] not null,
  started_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  duration_secs bigint,
  peak_viewers bigint,
  avg_viewers double precision,
  total_messages bigint,
  unique_chatters bigint,
  new_followers bigint,
  figures jsonb,
  counted_at timestamp with time zone,
  constraint stream_sessions_pkey PRIMARY KEY (id)
);
CREATE INDEX stream_sessions_counted ON public.stream_sessions USING btree (counted_at) WHERE (NOT is_live);
CREATE INDEX stream_sessions_live ON public.stream_sessions USING btree (account_id) WHERE is_live;
CREATE INDEX stream_sessions_started ON public.stream_sessions USING btree (account_id, started_at DESC, id);

create table subject_hash_key (
  only_row boolean not null default true,
  wrapped_key text not null,
  constraint subject_hash_key_pkey PRIMARY KEY (only_row),
  constraint subject_hash_key_only_row_check CHECK (only_row)
);

create table subject_key_erasures (
  seq bigint not null generated always as identity,
  key_id uuid not null,
  erased_at timestamp with time zone not null default now(),
  constraint subject_key_erasures_pkey PRIMARY KEY (seq)
);
CREATE INDEX subject_key_erasures_key_id ON public.subject_key_erasures USING btree (key_id);

create table subject_keys (
  key_id uuid not null,
  subject_hash bytea not null,
  wrapped_key text not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  constraint subject_keys_pkey PRIMARY KEY (key_id),
  constraint subject_keys_subject_hash_key UNIQUE (subject_hash)
);
CREATE INDEX subject_keys_expiry ON public.subject_keys USING btree (expires_at) WHERE (expires_at IS NOT NULL);

create table subject_places (
  subject bytea not null,
  source_id integer not null,
  block bigint not null,
  constraint subject_places_pkey PRIMARY KEY (subject, source_id, block)
);

create table subject_sources (
  id integer not null generated always as identity,
  source text not null,
  engine text not null,
  partition integer not null,
  position text,
  constraint subject_sources_pkey PRIMARY KEY (id),
  constraint subject_sources_source_engine_partition_key UNIQUE (source, engine, partition)
);

create table subject_streams (
  subject bytea not null,
  source_id integer not null,
  stream text not null,
  constraint subject_streams_pkey PRIMARY KEY (subject, source_id, stream)
);

create table system_connections (
  platform text not null,
  client_id text,
  channel_mode text not null default 'system'::text,
  bot_mode text not null default 'system'::text,
  bot_connection_id uuid,
  bot_user_id text,
  reconnect_required boolean not null default false,
  bot_connected_at timestamp with time zone,
  constraint system_connections_pkey PRIMARY KEY (platform)
);

create table system_keys (
  id uuid not null,
  key_hash text not null,
  key_prefix text not null,
  label text not null,
  permissions text[] not null,
  created_at timestamp with time zone not null,
  constraint system_keys_pkey PRIMARY KEY (id),
  constraint system_keys_key_hash_key UNIQUE (key_hash)
);

create table timed_messages (
  account_id uuid not null,
  platform text not null,
  sent integer not null,
  sent_at timestamp with time zone not null,
  constraint timed_messages_pkey PRIMARY KEY (account_id, platform)
);

create table twitch_conduit_subscriptions (
  conduit_id text not null,
  channel_id text not null,
  name text not null,
  subscription_id text,
  since text,
  refused text,
  consent text,
  asked boolean not null default false,
  seen_at timestamp with time zone not null,
  changed_at timestamp with time zone not null,
  constraint twitch_conduit_subscriptions_pkey PRIMARY KEY (conduit_id, channel_id, name)
);
CREATE INDEX twitch_conduit_subscriptions_changed ON public.twitch_conduit_subscriptions
  USING btree (conduit_id, changed_at);
CREATE INDEX twitch_conduit_subscriptions_id ON public.twitch_conduit_subscriptions USING btree (subscription_id);

create table twitch_conduits (
  client_id text not null,
  conduit_id text,
  shard_count integer not null,
  others text[] not null default '{}'::text[],
  receives_from timestamp with time zone,
  checked_at timestamp with time zone,
  checks integer not null default 0,
  sessions jsonb not null default '{}'::jsonb,
  gaps integer not null default 0,
  gap_from timestamp with time zone,
  gap_to timestamp with time zone,
  paused_at timestamp with time zone,
  constraint twitch_conduits_pkey PRIMARY KEY (client_id)
);

create table unknown_user_refreshes (
  account_id uuid not null,
  person_hash text not null,
  refreshed_at timestamp with time zone not null,
  constraint unknown_user_refreshes_pkey PRIMARY KEY (account_id, person_hash)
);
CREATE INDEX unknown_user_refreshes_at ON public.unknown_user_refreshes USING btree (refreshed_at);

create table uploads (
  id uuid not null,
  account_id uuid not null,
  filename text not null,
  content_type text not null,
  size_bytes bigint not null,
  storage_key text not null,
  sha256 text not null,
  purpose text not null,
  created_at timestamp with time zone not null,
  constraint uploads_pkey PRIMARY KEY (id)
);
CREATE INDEX uploads_account ON public.uploads USING btree (account_id, created_at DESC, id);
CREATE INDEX uploads_storage_key ON public.uploads USING btree (storage_key);

create table uploads_under_way (
  key text not null,
  begun_at timestamp with time zone not null default now(),
  constraint uploads_under_way_pkey PRIMARY KEY (key)
);

create table user_admin_roles (
  user_id uuid not null,
  role text not null,
  assigned_at timestamp with time zone not null,
  constraint user_admin_roles_pkey PRIMARY KEY (user_id, role)
);
CREATE INDEX user_admin_roles_role ON public.user_admin_roles USING btree (role);

create table user_channels (
  user_id uuid not null,
  identity_hash text not null,
  login_connection_id uuid not null,
  kept_at timestamp with time zone not null default clock_timestamp(),
  constraint user_channels_pkey PRIMARY KEY (user_id, identity_hash)
);
CREATE INDEX user_channels_login ON public.user_channels USING btree (login_connection_id, kept_at);

create table user_overrides (
  user_id uuid not null,
  account_creation text not null default 'default'::text,
  max_accounts bigint,
  constraint user_overrides_pkey PRIMARY KEY (user_id)
);

create table user_preferences (
  user_id uuid not null,
  streamer_mode boolean not null,
  extension_dev_mode boolean not null,
  set_at timestamp with time zone not null,
  constraint user_preferences_pkey PRIMARY KEY (user_id)
);

create table user_role_holders (
  user_id uuid not null,
  role_id uuid not null,
  given_at timestamp with time zone not null,
  constraint user_role_holders_pkey PRIMARY KEY (user_id)
);
CREATE INDEX user_role_holders_role ON public.user_role_holders USING btree (role_id, given_at DESC, user_id);

create table user_roles (
  id uuid not null,
  slug text not null,
  name text not null,
  description text,
  permissions text[] not null,
  is_system boolean not null,
  is_default boolean not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint user_roles_pkey PRIMARY KEY (id)
);

create table user_sessions (
  id uuid not null,
  user_id uuid not null,
  provider text,
  active_account_id uuid,
  started_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint user_sessions_pkey PRIMARY KEY (id)
);
CREATE INDEX user_sessions_account_idx ON public.user_sessions
  USING btree (active_account_id, id) WHERE (active_account_id IS NOT NULL);
CREATE INDEX user_sessions_user_idx ON public.user_sessions USING btree (user_id, started_at DESC, id DESC);

create table users (
  id uuid not null,
  display_name text,
  avatar_url text,
  created_at timestamp with time zone not null,
  last_login_at timestamp with time zone,
  constraint users_pkey PRIMARY KEY (id)
);
CREATE INDEX users_newest ON public.users USING btree (created_at DESC, id DESC);

create table webhook_door (
  one boolean not null default true,
  open_at timestamp with time zone not null,
  gap_from timestamp with time zone,
  gap_to timestamp with time zone,
  constraint webhook_door_pkey PRIMARY KEY (one),
  constraint webhook_door_one_check CHECK (one)
);

create table widget_access (
  id uuid not null,
  widget_id uuid not null,
  account_id uuid not null,
  user_id uuid not null,
  role text not null,
  granted_by uuid,
  created_at timestamp with time zone not null,
  constraint widget_access_pkey PRIMARY KEY (widget_id, user_id)
);
CREATE INDEX widget_access_account ON public.widget_access USING btree (account_id, user_id);

create table widget_tokens (
  id uuid not null,
  kind text not null default 'widget'::text,
  token_hash text not null,
  account_id uuid not null,
  widget_id uuid not null,
  channel text not null,
  install_grants text[] not null default '{}'::text[],
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone,
  constraint widget_tokens_pkey PRIMARY KEY (id),
  constraint widget_tokens_token_hash_key UNIQUE (token_hash)
);
CREATE INDEX widget_tokens_account ON public.widget_tokens USING btree (account_id);
CREATE INDEX widget_tokens_widget ON public.widget_tokens USING btree (widget_id);

create table widgets (
  id uuid not null,
  account_id uuid not null,
  widget_type text not null,
  name text not null,
  config jsonb not null,
  revision bigint not null,
  created_by uuid,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  alerts_paused boolean not null default false,
  alerts_muted boolean not null default false,
  constraint widgets_pkey PRIMARY KEY (id)
);
CREATE INDEX widgets_account ON public.widgets USING btree (account_id, created_at DESC, id);

create sequence work_changes;

create table work_freed (
  change bigint not null default nextval('work_changes'::regclass),
  kind text not null,
  name text not null,
  freed_at timestamp with time zone not null default clock_timestamp(),
  constraint work_freed_pkey PRIMARY KEY (change)
);
CREATE INDEX work_freed_change ON public.work_freed USING btree (kind, change);

create table work_holds (
  name text not null,
  member uuid not null,
  kind text not null generated always as (
CASE
    WHEN (strpos(name, ':'::text) > 0) THEN split_part(name, ':'::text, 1)
    ELSE ''::text
END),
  wanted_by uuid,
  change bigint not null default nextval('work_changes'::regclass),
  constraint work_holds_pkey PRIMARY KEY (name)
);
CREATE INDEX work_holds_change ON public.work_holds USING btree (kind, change);

create table work_members (
  member uuid not null,
  session_lock bigint not null,
  names text[] not null,
  renewed_at timestamp with time zone not null,
  kinds text[] not null default '{}'::text[],
  constraint work_members_pkey PRIMARY KEY (member)
);

create table ws_tokens (
  jti_hash text not null,
  parent_kind text not null,
  parent_id text not null,
  expires_at timestamp with time zone not null,
  constraint ws_tokens_pkey PRIMARY KEY (jti_hash)
);
CREATE INDEX ws_tokens_expiry_idx ON public.ws_tokens USING btree (expires_at);
CREATE INDEX ws_tokens_parent_idx ON public.ws_tokens USING btree (parent_id);

create table youtube_quota (
  client_id text not null,
  day date not null,
  used bigint not null default 0,
  exhausted boolean not null default false,
  written bigint not null default 0,
  constraint youtube_quota_pkey PRIMARY KEY (client_id, day)
);

create table youtube_quota_shares (
  client_id text not null,
  connection_id text not null,
  allowance double precision not null,
  at timestamp with time zone not null,
  constraint youtube_quota_shares_pkey PRIMARY KEY (client_id, connection_id)
);

-- function append_domain_event, version 2
CREATE OR REPLACE FUNCTION public.append_domain_event(p_stream text, p_expected bigint, p_id uuid, p_type text, p_data json, p_metadata json, OUT status integer, OUT revision bigint, OUT at_position bigint)
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_locked constant boolean := pg_advisory_xact_lock(7070002) is not null;
  v_head bigint;
  v_last bigint;
  v_stream text;
begin
  select (select e.revision from domain_events e where e.stream = p_stream order by e.revision desc limit 1),
         (select e.position from domain_events e order by e.position desc limit 1),
         (select e.stream from domain_events e where e.id = p_id)
    into v_head, v_last, v_stream;
  v_head := coalesce(v_head, -1);
  if v_stream is null and p_expected in (-2, v_head) then
    status := 0;
    revision := v_head + 1;
    at_position := coalesce(v_last, 0) + 1;
    insert into domain_events (position, stream, revision, id, type, data, metadata, recorded_at)
      values (at_position, p_stream, revision, p_id, p_type, p_data, p_metadata, clock_timestamp());
  elsif v_stream = p_stream then
    status := 2;
    select e.revision, e.position from domain_events e where e.id = p_id into revision, at_position;
  else
    status := case when v_stream is null then 1 else 3 end;
    revision := v_head;
  end if;
end
$function$;

-- function append_domain_events, version 1
CREATE OR REPLACE FUNCTION public.append_domain_events(p_metadata text, p_wave_writes integer[], p_wave_events integer[], p_write_append integer[], p_write_stream text, p_write_expected bigint[], p_write_size integer[], p_write_last_id text, p_event_write integer[], p_event_index integer[], p_event_id text, p_event_type text, p_event_data text)
 RETURNS TABLE(write_no integer, status integer, revision bigint, at_position bigint)
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET jit TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
#variable_conflict use_column
declare
  v_metadata text[] := string_to_array(p_metadata, E'\n');
  v_stream text[] := string_to_array(p_write_stream, E'\n');
  v_last_id uuid[] := string_to_array(p_write_last_id, E'\n')::uuid[];
  v_id uuid[] := string_to_array(p_event_id, E'\n')::uuid[];
  v_type text[] := string_to_array(p_event_type, E'\n');
  v_data text[] := string_to_array(p_event_data, E'\n');
  v_now timestamptz;
  w0 int := 0;
  e0 int := 0;
  w1 int;
  e1 int;
begin
  perform pg_advisory_xact_lock(7070002);
  v_now := clock_timestamp();
  for wave in 1 .. cardinality(p_wave_writes) loop
    w1 := p_wave_writes[wave];
    e1 := p_wave_events[wave];
    return query
      with found as (
        select w0 + u.n::int as write_no, u.append_no, u.size, u.expected, coalesce(h.revision, -1) as head,
               d.position as first_position, d.revision as first_revision, coalesce(d.stream = u.stream, false) as again
        from unnest(p_write_append[w0 + 1 : w1], v_stream[w0 + 1 : w1], p_write_expected[w0 + 1 : w1],
                    p_write_size[w0 + 1 : w1], v_last_id[w0 + 1 : w1])
             with ordinality as u (append_no, stream, expected, size, last_id, n)
        left join lateral (
          select e.revision from domain_events e where e.stream = u.stream order by e.revision desc limit 1
        ) h on true
        left join lateral (
          select e.position, e.revision, e.stream from domain_events e where e.id = u.last_id limit 1
        ) d on true
      ), judged as (
        select f.*, case when count(f.first_position) over a > 0
                         then case when bool_and(f.again) over a then 2 else 3 end
                         when bool_or(f.expected <> -2 and f.expected <> f.head) over a then 1
                         else 0 end as status
        from found f
        window a as (partition by f.append_no)
      ), placed as materialized (
        select j.*, (select coalesce(max(e.position), 0) from domain_events e)
                    + sum(case when j.status = 0 then j.size else 0 end) over (order by j.write_no) as last_position
        from judged j
      ), stored as (
        insert into domain_events (position, stream, revision, id, type, data, metadata, recorded_at)
        select p.last_position - p.size + u.index, v_stream[p.write_no], p.head + u.index, u.id, u.type, u.data::json,
               v_metadata[p.append_no]::json, v_now
        from unnest(p_event_write[e0 + 1 : e1], p_event_index[e0 + 1 : e1], v_id[e0 + 1 : e1], v_type[e0 + 1 : e1],
                    v_data[e0 + 1 : e1])
             as u (write_no, index, id, type, data)
        join placed p on p.write_no = u.write_no and p.status = 0
      )
      select p.write_no, p.status,
             case p.status when 0 then p.head + p.size when 2 then p.first_revision else p.head end,
             case p.status when 0 then p.last_position::bigint when 2 then p.first_position end
      from placed p;
    w0 := w1;
    e0 := e1;
  end loop;
end
$function$;

-- function broker_append, version 1
CREATE OR REPLACE FUNCTION public.broker_append(p_topic_id integer, p_data bytea, p_partition integer[], p_rank integer[], p_start integer[], p_key integer[], p_headers integer[], p_value integer[], p_partitions integer[], p_counts integer[])
 RETURNS TABLE(partition integer, first_offset bigint, appended_micros bigint)
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET jit TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_now timestamptz;
begin
  perform from broker_partitions b
    where b.topic_id = p_topic_id and b.partition = any (p_partitions) order by b.partition for update;
  v_now := clock_timestamp();
  return query
  with moved as (
    update broker_partitions b set next_offset = b.next_offset + c.size
    from unnest(p_partitions, p_counts) c (partition, size)
    where b.topic_id = p_topic_id and b.partition = c.partition
    returning b.partition, b.next_offset - c.size as first_offset
  ), written as (
    insert into broker_records (topic_id, partition, "offset", appended_at, key, headers, value)
    select p_topic_id, r.partition, m.first_offset + r.rank, v_now,
      convert_from(substring(p_data from r.start for r.key), 'UTF8'),
      case when r.headers > 0 then convert_from(substring(p_data from r.start + r.key for r.headers), 'UTF8') end,
      substring(p_data from r.start + r.key + r.headers for r.value)
    from unnest(p_partition, p_rank, p_start, p_key, p_headers, p_value) r (partition, rank, start, key, headers, value)
    join moved m on m.partition = r.partition
  )
  select m.partition, m.first_offset, (extract(epoch from v_now) * 1000000)::bigint from moved m;
end $function$;

-- function broker_balance, version 1
CREATE OR REPLACE FUNCTION public.broker_balance(p_topic_id integer, p_group text, p_member uuid, p_session_lock bigint, p_release integer[], p_patience interval)
 RETURNS TABLE(partition integer, wanted boolean, joined boolean)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
  v_now timestamptz;
  v_members uuid[];
  v_joined boolean;
begin
  perform pg_advisory_xact_lock(7070004, hashtext(p_topic_id || ':' || p_group));
  v_now := clock_timestamp();
  insert into broker_members as m (topic_id, group_name, member, session_lock, renewed_at)
    values (p_topic_id, p_group, p_member, p_session_lock, v_now)
    on conflict (topic_id, group_name, member)
      do update set renewed_at = excluded.renewed_at, session_lock = excluded.session_lock
    returning m.xmax = 0 into v_joined;
  delete from broker_members m
    where m.topic_id = p_topic_id and m.group_name = p_group and m.member <> p_member
      and (m.renewed_at < v_now - p_patience or pg_try_advisory_xact_lock(m.session_lock));
  delete from broker_leases l
    where l.topic_id = p_topic_id and l.group_name = p_group
      and ((l.member = p_member and l.partition = any (p_release))
        or not exists (
          select from broker_members m
          where m.topic_id = p_topic_id and m.group_name = p_group and m.member = l.member));
  select array_agg(m.member order by m.member) into v_members
    from broker_members m where m.topic_id = p_topic_id and m.group_name = p_group;
  insert into broker_leases (topic_id, group_name, partition, member)
    select p_topic_id, p_group, b.partition, p_member from broker_partitions b
    where b.topic_id = p_topic_id and v_members[1 + b.partition % cardinality(v_members)] = p_member
    on conflict do nothing;
  return query
    select l.partition, v_members[1 + l.partition % cardinality(v_members)] = p_member, v_joined from broker_leases l
    where l.topic_id = p_topic_id and l.group_name = p_group and l.member = p_member
    union all
    select null::int, true, v_joined
    order by 1;
end $function$;

-- function broker_ensure_topic, version 1
CREATE OR REPLACE FUNCTION public.broker_ensure_topic(p_topic text, p_partitions integer)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_id int;
begin
  if exists (select from broker_topics t where t.topic = p_topic) then return; end if;
  -- Many processes may start at once; the second one finds the topic made.
  perform pg_advisory_xact_lock(7070003);
  insert into broker_topics (topic, partitions) values (p_topic, p_partitions)
    on conflict (topic) do nothing returning topic_id into v_id;
  if v_id is null then return; end if;
  insert into broker_partitions (topic_id, partition) select v_id, p from generate_series(0, p_partitions - 1) p;
  execute format('create table broker_records_%s partition of broker_records for values in (%s)', v_id, v_id);
end $function$;

-- function broker_fetch, version 2
CREATE OR REPLACE FUNCTION public.broker_fetch(p_topic_id integer, p_partition integer[], p_from bigint[], p_to bigint[], p_max_records integer, p_max_bytes integer)
 RETURNS TABLE(partition integer, earliest bigint, next_offset bigint, packed text)
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
  return query
  select r.partition, r.earliest, r.next_offset, encode(r.packed, 'base64')
  from broker_read(p_topic_id, p_partition, p_from, p_to, p_max_records, p_max_bytes) r;
end $function$;

-- function broker_leave, version 1
CREATE OR REPLACE FUNCTION public.broker_leave(p_topic_id integer, p_group text, p_member uuid)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  perform pg_advisory_xact_lock(7070004, hashtext(p_topic_id || ':' || p_group));
  delete from broker_leases l where l.topic_id = p_topic_id and l.group_name = p_group and l.member = p_member;
  delete from broker_members m where m.topic_id = p_topic_id and m.group_name = p_group and m.member = p_member;
end $function$;

-- function broker_publish, version 1
CREATE OR REPLACE FUNCTION public.broker_publish(p_topic_id integer, p_data bytea, p_partition integer[], p_rank integer[], p_start integer[], p_key integer[], p_headers integer[], p_value integer[], p_partitions integer[], p_counts integer[])
 RETURNS void
 LANGUAGE sql
AS $function$select from broker_append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)$function$;

-- function broker_read, version 1
CREATE OR REPLACE FUNCTION public.broker_read(p_topic_id integer, p_partition integer[], p_from bigint[], p_to bigint[], p_max_records integer, p_max_bytes integer)
 RETURNS TABLE(partition integer, earliest bigint, next_offset bigint, packed bytea)
 LANGUAGE plpgsql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
#variable_conflict use_column
begin
  return query
  with wanted as (
    select b.partition, b.earliest, b.next_offset, w.from_offset, least(w.to_offset, b.next_offset) as to_offset,
      greatest(1, count(*) filter (where w.from_offset < least(w.to_offset, b.next_offset)) over ()) as busy
    from unnest(p_partition, p_from, p_to) w (partition, from_offset, to_offset)
    join broker_partitions b on b.topic_id = p_topic_id and b.partition = w.partition
  )
  select w.partition, w.earliest, w.next_offset, found.packed
  from wanted w
  left join lateral (
    select string_agg(
        int8send(r."offset") || timestamptz_send(r.appended_at) || int4send(octet_length(r.key))
          || int4send(coalesce(octet_length(r.headers), 0)) || int4send(octet_length(r.value))
          || textsend(r.key || coalesce(r.headers, '')) || r.value, ''::bytea order by r."offset") as packed
    from (
      select s.*, sum(octet_length(s.value)) over (order by s."offset" rows unbounded preceding)
          - octet_length(s.value) as bytes_before
      from (
        select l.* from broker_records l
        where l.topic_id = p_topic_id and l.partition = w.partition
            and l."offset" >= w.from_offset and l."offset" < w.to_offset
        order by l."offset" limit greatest(1, p_max_records / w.busy)
      ) s
    ) r
    where r.bytes_before < p_max_bytes / w.busy
  ) found on w.from_offset >= w.earliest and w.from_offset < w.to_offset
  order by w.partition;
end $function$;

-- function drop_outbox_partition, version 1
CREATE OR REPLACE FUNCTION public.drop_outbox_partition(p_keep interval)
 RETURNS text
 LANGUAGE plpgsql
 SET lock_timeout TO '300ms'
 SET "TimeZone" TO 'UTC'
 SET "DateStyle" TO 'ISO'
AS $function$
declare
  eldest text;
begin
  perform pg_advisory_xact_lock(hashtextextended('ensure_outbox_partitions', 0));
  select part into eldest from (
    select c.oid::regclass::text as part,
      substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \(''([^'']+)''\)')::timestamptz as ends
    from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'outbox'::regclass
  ) parts where ends <= clock_timestamp() - p_keep order by ends limit 1;
  if eldest is not null then
    execute format('drop table %s', eldest);
  end if;
  return eldest;
end
$function$;

-- function ensure_event_log_partitions, version 3
CREATE OR REPLACE FUNCTION public.ensure_event_log_partitions(ahead integer)
 RETURNS integer
 LANGUAGE plpgsql
 SET lock_timeout TO '300ms'
 SET "TimeZone" TO 'UTC'
AS $function$
declare
  home  text;
  month date;
  part  text;
  made  int := 0;
  moved bigint;
begin
  -- Another process makes them.
  if not pg_try_advisory_xact_lock(hashtextextended('ensure_event_log_partitions', 0)) then return 0; end if;
  select c.relnamespace::regnamespace::text into home from pg_class c where c.oid = 'platform_event_logs'::regclass;
  for month in execute format($q$
    select m::date from generate_series(
      date_trunc('month', now()), date_trunc('month', now()) + make_interval(months => %2$s), '1 month') m
    union
    select date_trunc('month', created_at)::date from %1$s.platform_event_logs_default
    where created_at >= date_trunc('month', now()) - interval '10 years'
      and created_at < date_trunc('month', now()) + make_interval(months => %2$s + 1)
    group by 1
    having date_trunc('month', min(created_at)) >= date_trunc('month', now()) - interval '13 months'
      or count(*) >= 10000
    order by 1 $q$, home, ahead)
  loop
    part := format('%s.platform_event_logs_%s', home, to_char(month, 'YYYY_MM'));
    continue when to_regclass(part) is not null;
    execute format('create table %s (like %s.platform_event_logs including all)', part, home);
    -- Rows of the month that came before its partition would make the attach fail: they move first, and none may come
    -- meanwhile.
    execute format('lock table %s.platform_event_logs_default in access exclusive mode', home);
    execute format('with moved as (delete from %1$s.platform_event_logs_default
                                    where created_at >= %3$L and created_at < %4$L returning *)
                    insert into %2$s select * from moved',
                   home, part, month::timestamptz, (month + interval '1 month')::timestamptz);
    get diagnostics moved = row_count;
    execute format('alter table %s.platform_event_logs attach partition %s for values from (%L) to (%L)',
                   home, part, month::timestamptz, (month + interval '1 month')::timestamptz);
    made := made + 1;
    exit when moved > 0;
  end loop;
  return made;
end $function$;

-- function ensure_ledger_partitions, version 3
CREATE OR REPLACE FUNCTION public.ensure_ledger_partitions(ahead integer)
 RETURNS integer
 LANGUAGE plpgsql
 SET lock_timeout TO '300ms'
 SET "TimeZone" TO 'UTC'
AS $function$
declare
  quarter date;
  part    text;
  one     regclass;
  made    int := 0;
  moved   bigint;
  early   boolean;
begin
  -- Another process makes them.
  if not pg_try_advisory_xact_lock(hashtextextended('ensure_ledger_partitions', 0)) then return 0; end if;
  for one in
    select i.inhrelid from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'ledger'::regclass and (pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT'
      or substring(pg_get_expr(c.relpartbound, c.oid) from $$FROM \('([^']+)'\)$$)::timestamptz > now())
  loop
    execute format('select exists (select from %s where taken_at >= now() + interval ''1 hour'')', one) into early;
    continue when not early;
    -- Number of LOCKS.backup.
    exit when not pg_try_advisory_xact_lock(7070017);
    execute format($$delete from %s f using ledger l
      where f.taken_at >= now() + interval '1 hour' and l.taken_at < f.taken_at
        and l.account_id = f.account_id and l.external_id = f.external_id
        and l.projection = f.projection and l.topic = f.topic$$, one);
    execute format($$with moved as (delete from %s where taken_at >= now() + interval '1 hour' returning *)
      insert into ledger (projection, topic, account_id, external_id, record_id, taken_at)
      select projection, topic, account_id, external_id, record_id, now() from moved$$, one);
  end loop;
  if to_regclass('ledger_default') is null then
    create table ledger_default partition of ledger default;
  end if;
  for quarter in
    select q::date
    from generate_series(date_trunc('quarter', now()), now() + make_interval(months => ahead), '3 months') q
    union
    select date_trunc('quarter', taken_at)::date from ledger_default
    where taken_at >= now() - interval '10 years' and taken_at < now() + make_interval(months => ahead)
    order by 1
  loop
    part := format('ledger_%s_q%s', extract(year from quarter), extract(quarter from quarter));
    continue when to_regclass(part) is not null;
    execute format('create table %s (like ledger including defaults)', part);
    lock table ledger_default in access exclusive mode;
    execute format(
      'with moved as (delete from ledger_default where taken_at >= %L and taken_at < %L returning *)
       insert into %s select * from moved',
      quarter::timestamptz, (quarter + interval '3 months')::timestamptz, part);
    get diagnostics moved = row_count;
    execute format('alter table ledger attach partition %s for values from (%L) to (%L)',
                   part, quarter::timestamptz, (quarter + interval '3 months')::timestamptz);
    made := made + 1;
    exit when moved > 0;
  end loop;
  -- A restored partition comes without its key.
  for one in
    select i.inhrelid from pg_inherits i
    where i.inhparent = 'ledger'::regclass
      and not exists (select from pg_index k where k.indrelid = i.inhrelid and k.indisunique)
  loop
    execute format('create unique index on %s (account_id, external_id, projection, topic)', one);
  end loop;
  return made;
end $function$;

-- function ensure_outbox_partitions, version 1
CREATE OR REPLACE FUNCTION public.ensure_outbox_partitions(p_length interval)
 RETURNS integer
 LANGUAGE plpgsql
 SET lock_timeout TO '2s'
 SET "TimeZone" TO 'UTC'
 SET "DateStyle" TO 'ISO'
AS $function$
declare
  place timestamptz;
  since timestamptz;
  part  text;
  made  int := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended('ensure_outbox_partitions', 0));
  for step in 0 .. 2 loop
    place := date_bin(p_length, clock_timestamp() + step * p_length, '2000-01-01 00:00:00+00');
    select greatest(place, max(ends)) into since from (
      select coalesce(substring(bound from 'FROM \(''([^'']+)''\)')::timestamptz, '-infinity') as begins,
        substring(bound from 'TO \(''([^'']+)''\)')::timestamptz as ends
      from (select pg_get_expr(c.relpartbound, c.oid) as bound from pg_inherits i join pg_class c on c.oid = i.inhrelid
            where i.inhparent = 'outbox'::regclass) parts
    ) bounds where begins < place + p_length and ends > place;
    since := coalesce(since, place);
    part := 'outbox_' || to_char(since, 'YYYY_MM_DD_HH24MISS');
    continue when since >= place + p_length or to_regclass(part) is not null;
    execute format('create table %I (like outbox including defaults) with (autovacuum_enabled = false)', part);
    execute format('create unique index on %I (channel, seq)', part);
    execute format('create index on %I (shard, id)', part);
    if exists (select from installation where name = 'outbox_one_order') then
      execute format('create index on %I (id)', part);
    end if;
    lock table outbox_default in access exclusive mode;
    execute format(
      'with moved as (delete from outbox_default where created_at >= %L and created_at < %L returning *)
       insert into %I select * from moved', since, place + p_length, part);
    execute format('alter table outbox attach partition %I for values from (%L) to (%L)',
                   part, since, place + p_length);
    made := made + 1;
  end loop;
  return made;
end
$function$;

-- function ensure_stream_sample_partitions, version 2
CREATE OR REPLACE FUNCTION public.ensure_stream_sample_partitions(ahead integer)
 RETURNS integer
 LANGUAGE plpgsql
 SET lock_timeout TO '300ms'
 SET "TimeZone" TO 'UTC'
AS $function$
declare
  month date;
  part  text;
  made  int := 0;
  taken boolean;
begin
  if (select relkind from pg_class where oid = 'stream_samples'::regclass) <> 'p' then return 0; end if;
  -- Another process makes them.
  if not pg_try_advisory_xact_lock(hashtextextended('ensure_stream_sample_partitions', 0)) then return 0; end if;
  for month in
    select m::date from generate_series(
      date_trunc('month', now()), date_trunc('month', now()) + make_interval(months => ahead), '1 month') m
  loop
    part := 'stream_samples_' || to_char(month, 'YYYY_MM');
    continue when to_regclass(part) is not null;
    select exists (
      select from stream_samples_default where sampled_at >= month and sampled_at < month + interval '1 month'
    ) into taken;
    continue when taken;
    execute format('create table %I partition of stream_samples for values from (%L) to (%L)',
                   part, month::timestamptz, (month + interval '1 month')::timestamptz);
    made := made + 1;
  end loop;
  return made;
end $function$;

-- function ledger_known, version 2
CREATE OR REPLACE FUNCTION public.ledger_known(p_projection text, p_topic text, p_accounts text[], p_external_ids text[], p_ids text[], p_former_ids text[], p_bodies text[])
 RETURNS TABLE(id uuid, own boolean)
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET jit TO 'off'
AS $function$
begin
  return query
  with asked as materialized (
    select unnest(p_accounts)::uuid as account_id, unnest(p_external_ids) as external_id, unnest(p_ids)::uuid as id,
      unnest(p_former_ids) as former_id, unnest(p_bodies) as body
  ),
  known as materialized (
    select a.id, found.record_id = a.id as own from asked a cross join lateral (
      select l.record_id from ledger l
      where l.account_id = a.account_id and l.external_id = a.external_id
        and l.projection = p_projection and l.topic = p_topic and l.taken_at < now() + interval '1 day'
      offset 0) found
    union all
    select a.id, found.record_id = a.id as own from asked a cross join lateral (
      select l.record_id from ledger l
      where l.account_id = a.account_id and l.external_id = a.former_id
        and l.projection = p_projection and l.topic = p_topic and l.taken_at < now() + interval '1 day'
      offset 0) found
    union all
    select a.id, found.record_id = a.id from asked a cross join lateral (
      select b.record_id from ledger_bodies b
      where b.account_id = a.account_id and b.body = a.body and b.projection = p_projection
      offset 0) found
  )
  select k.id, bool_and(k.own) from known k group by k.id;
end $function$;

-- function ledger_passed_over, version 2
CREATE OR REPLACE FUNCTION public.ledger_passed_over(p_projection text, p_topic text, p_accounts text[], p_external_ids text[], p_ids text[])
 RETURNS TABLE(id uuid, own boolean)
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET jit TO 'off'
AS $function$
begin
  return query
  with asked as materialized (
    select unnest(p_accounts)::uuid as account_id, unnest(p_external_ids) as external_id, unnest(p_ids)::uuid as id
  ),
  known as materialized (
    select a.id, found.record_id = a.id as own from asked a cross join lateral (
      select l.record_id from ledger l
      where l.account_id = a.account_id and l.external_id = a.external_id
        and l.projection = p_projection and l.topic = p_topic and l.taken_at < now() + interval '1 day'
      offset 0) found
  )
  select a.id, false from asked a where a.id not in (select k.id from known k where k.own);
end $function$;

-- function ledger_take, version 4
CREATE OR REPLACE FUNCTION public.ledger_take(p_projection text, p_topic text, p_accounts text[], p_external_ids text[], p_ids text[])
 RETURNS TABLE(id uuid, own boolean)
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET jit TO 'off'
AS $function$
begin
  begin
    return query
    with asked as materialized (
      select unnest(p_accounts)::uuid as account_id, unnest(p_external_ids) as external_id, unnest(p_ids)::uuid as id
    ),
    known as materialized (
      select a.id, found.record_id = a.id as own from asked a cross join lateral (
        select l.record_id from ledger l
        where l.account_id = a.account_id and l.external_id = a.external_id
          and l.projection = p_projection and l.topic = p_topic and l.taken_at < now() + interval '1 day'
        offset 0) found
    ),
    taken as (
      insert into ledger (projection, topic, account_id, external_id, record_id)
      select p_projection, p_topic, a.account_id, a.external_id, a.id from asked a
      where a.external_id is not null and a.id not in (select k.id from known k)
    )
    select k.id, k.own from known k;
  exception when unique_violation then
    return query
    select asked.id, asked.own
    from ledger_take_unsigned(p_projection, p_topic, p_accounts, p_external_ids, p_ids, '{}', '{}') asked;
  end;
end $function$;

-- function ledger_take_by_account, version 1
CREATE OR REPLACE FUNCTION public.ledger_take_by_account(p_projection text, p_topic text, p_accounts text[], p_external_ids text[], p_ids text[])
 RETURNS TABLE(id uuid, own boolean)
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_nestloop TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET jit TO 'off'
AS $function$
begin
  if current_setting('server_version_num')::int < 170000 then
    return query
    select asked.id, asked.own from ledger_take(p_projection, p_topic, p_accounts, p_external_ids, p_ids) asked;
    return;
  end if;
  begin
    return query
    with asked as materialized (
      select unnest(p_accounts)::uuid as account_id, unnest(p_external_ids) as external_id, unnest(p_ids)::uuid as id
    ),
    found as materialized (
      select wanted.account_id, before.external_id, before.record_id
      from (select a.account_id, array_agg(a.external_id) as ids from asked a group by a.account_id) wanted
        cross join lateral (
          select l.external_id, l.record_id from ledger l
          where l.account_id = wanted.account_id and l.external_id = any (wanted.ids)
            and l.projection = p_projection and l.topic = p_topic and l.taken_at < now() + interval '1 day'
          offset 0) before
    ),
    known as materialized (
      select a.id, f.record_id = a.id as own
      from found f join asked a on a.account_id = f.account_id and a.external_id = f.external_id
    ),
    taken as (
      insert into ledger (projection, topic, account_id, external_id, record_id)
      select p_projection, p_topic, a.account_id, a.external_id, a.id from asked a
      where a.external_id is not null and a.id not in (select k.id from known k)
    )
    select k.id, k.own from known k;
  exception when unique_violation then
    return query
    select asked.id, asked.own
    from ledger_take_unsigned(p_projection, p_topic, p_accounts, p_external_ids, p_ids, '{}', '{}') asked;
  end;
end $function$;

-- function ledger_take_unsigned, version 2
CREATE OR REPLACE FUNCTION public.ledger_take_unsigned(p_projection text, p_topic text, p_accounts text[], p_external_ids text[], p_ids text[], p_former_ids text[], p_bodies text[])
 RETURNS TABLE(id uuid, own boolean)
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET jit TO 'off'
AS $function$
begin
  return query
  with asked as materialized (
    select unnest(p_accounts)::uuid as account_id, unnest(p_external_ids) as external_id, unnest(p_ids)::uuid as id,
      unnest(p_former_ids) as former_id, unnest(p_bodies) as body
  ),
  known as materialized (
    select a.id, found.record_id = a.id as own from asked a cross join lateral (
      select l.record_id from ledger l
      where l.account_id = a.account_id and l.external_id = a.external_id
        and l.projection = p_projection and l.topic = p_topic and l.taken_at < now() + interval '1 day'
      offset 0) found
    union all
    select a.id, found.record_id = a.id as own from asked a cross join lateral (
      select l.record_id from ledger l
      where l.account_id = a.account_id and l.external_id = a.former_id
        and l.projection = p_projection and l.topic = p_topic and l.taken_at < now() + interval '1 day'
      offset 0) found
    union all
    select a.id, found.record_id = a.id from asked a cross join lateral (
      select b.record_id from ledger_bodies b
      where b.account_id = a.account_id and b.body = a.body and b.projection = p_projection
      offset 0) found
  ),
  claimed as (
    -- One order for all workers, so that two never wait for each other in a circle.
    insert into ledger_bodies (projection, account_id, body, record_id)
    select p_projection, a.account_id, a.body, a.id from asked a
    where a.body is not null and a.id not in (select k.id from known k)
    order by a.account_id, a.body
    on conflict do nothing returning record_id
  ),
  taken as (
    insert into ledger (projection, topic, account_id, external_id, record_id)
    select p_projection, p_topic, a.account_id, a.external_id, a.id from asked a
    where a.external_id is not null and a.id not in (select k.id from known k)
      and (a.body is null or a.id in (select c.record_id from claimed c))
    on conflict do nothing returning record_id
  )
  select k.id, bool_and(k.own) from known k group by k.id
  union all
  select a.id, false from asked a
  where a.id not in (select k.id from known k)
    and (a.external_id is not null and a.id not in (select t.record_id from taken t)
      or a.body is not null and a.id not in (select c.record_id from claimed c));
end $function$;

-- function ledger_taken_later, version 2
CREATE OR REPLACE FUNCTION public.ledger_taken_later()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if current_setting('lumio.restoring', true) = 'on' then
    return new;
  end if;
  if exists (select from ledger l where l.account_id = new.account_id and l.external_id = new.external_id
               and l.projection = new.projection and l.topic = new.topic
               and l.taken_at >= '2020-01-01 00:00:00+00') then
    return null;
  end if;
  return new;
end $function$;

-- function outbox_append, version 1
CREATE OR REPLACE FUNCTION public.outbox_append(p_names text[], p_shards integer[], p_hashes integer[], p_places integer[], p_event_types text[], p_data text[], p_traces text[] DEFAULT NULL::text[])
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
  marks  text[];
  seqs   bigint[];
  newest bigint;
begin
  perform pg_advisory_xact_lock(7070016, shard) from (select distinct unnest(p_shards) as shard order by 1) ascending;
  select array_agg(name) into marks from installation where name in ('outbox_lock', 'outbox_one_order');
  if marks is not null then
    perform pg_advisory_xact_lock(7070008);
    if 'outbox_lock' = any (marks) then
      perform pg_advisory_xact_lock(7070002);
    end if;
  end if;
  with head as (
    insert into channel_heads as h (channel, seq)
    select p_names[place], count(*) from unnest(p_places) as c (place) group by place order by 1
    on conflict (channel) do update set seq = h.seq + excluded.seq
    returning h.channel, h.seq
  ), message as (
    select place, nth, row_number() over (partition by place order by nth desc) - 1 as followers
    from unnest(p_places) with ordinality as c (place, nth)
  )
  select array_agg(h.seq - m.followers order by m.nth) into seqs
  from message m join head h on h.channel = p_names[m.place];
  with written as (
    insert into outbox (channel, seq, event_type, data, created_at, trace, shard, name_hash)
    select p_names[m.place], m.seq, m.event_type, m.data, clock_timestamp(), m.trace,
      p_shards[m.place], p_hashes[m.place]
    from (select unnest(p_places), unnest(seqs), unnest(p_event_types), unnest(p_data), unnest(p_traces))
      as m (place, seq, event_type, data, trace)
    returning id, shard
  ), moved as (
    update outbox_heads h set id = w.id
    from (select shard, max(id) as id from written group by shard) w where h.shard = w.shard
    returning h.id
  )
  select max(id) into newest from moved;
  return newest;
end
$function$;

-- function outbox_append_numbered, version 1
CREATE OR REPLACE FUNCTION public.outbox_append_numbered(p_names text[], p_shards integer[], p_hashes integer[], p_counts integer[], p_places integer[], p_numbers integer[], p_event_types text[], p_data text[], p_traces text[] DEFAULT NULL::text[])
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
  marks  text[];
  before bigint[];
  newest bigint;
begin
  perform pg_advisory_xact_lock(7070016, shard) from (select distinct unnest(p_shards) as shard order by 1) ascending;
  select array_agg(name) into marks from installation where name in ('outbox_lock', 'outbox_one_order');
  if marks is not null then
    perform pg_advisory_xact_lock(7070008);
    if 'outbox_lock' = any (marks) then
      perform pg_advisory_xact_lock(7070002);
    end if;
  end if;
  with asked as (
    select name, count, nth from unnest(p_names, p_counts) with ordinality as c (name, count, nth)
  ), head as (
    insert into channel_heads as h (channel, seq) select name, count from asked order by 1
    on conflict (channel) do update set seq = h.seq + excluded.seq
    returning h.channel, h.seq
  )
  select array_agg(h.seq - a.count order by a.nth) into before from asked a join head h on h.channel = a.name;
  insert into outbox (channel, seq, event_type, data, created_at, trace, shard, name_hash)
    select p_names[m.place], before[m.place] + m.number, m.event_type, m.data, clock_timestamp(), m.trace,
      p_shards[m.place], p_hashes[m.place]
    from (select unnest(p_places), unnest(p_numbers), unnest(p_event_types), unnest(p_data), unnest(p_traces))
      as m (place, number, event_type, data, trace);
  -- The last id given here is above those of every row of these shards, and whoever comes next gets a higher one.
  newest := currval('outbox_ids');
  update outbox_heads set id = newest where shard = any (p_shards);
  return newest;
end
$function$;

-- function outbox_bodies, version 1
CREATE OR REPLACE FUNCTION public.outbox_bodies(p_channels text[], p_seqs bigint[])
 RETURNS TABLE(shard integer, id bigint, channel text, seq bigint, event_type text, data text, created_at timestamp with time zone, trace text)
 LANGUAGE plpgsql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
#variable_conflict use_column
begin
  return query
  select o.shard, o.id, o.channel, o.seq, o.event_type, o.data, o.created_at, o.trace
  from unnest(p_channels, p_seqs) as asked (channel, seq)
    join lateral (select * from outbox x where x.channel = asked.channel and x.seq = asked.seq) o on true
  order by o.id;
end
$function$;

-- function outbox_page, version 1
CREATE OR REPLACE FUNCTION public.outbox_page(p_channel text, p_seq bigint, p_window interval, p_messages integer, p_bytes bigint)
 RETURNS TABLE(shard integer, id bigint, channel text, seq bigint, event_type text, data text, created_at timestamp with time zone, trace text)
 LANGUAGE plpgsql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
#variable_conflict use_column
begin
  return query
  select sized.shard, sized.id, sized.channel, sized.seq, sized.event_type, sized.data, sized.created_at, sized.trace
  from (
    select first.*, sum(octet_length(data)) over (order by seq rows between unbounded preceding and 1 preceding) as before
    from (
      select o.* from outbox o
      where o.channel = p_channel and o.seq > p_seq and o.created_at > statement_timestamp() - p_window
      order by o.seq limit p_messages
    ) first
  ) sized where coalesce(before, 0) < p_bytes order by seq;
end
$function$;

-- function outbox_places, version 1
CREATE OR REPLACE FUNCTION public.outbox_places()
 RETURNS bigint[]
 LANGUAGE sql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
  select array_agg(
    case shard when 64 then (select coalesce(max(o.id), 0) from outbox o where o.shard = 64) else id end order by shard)
  from outbox_heads
$function$;

-- function outbox_removals, version 1
CREATE OR REPLACE FUNCTION public.outbox_removals(p_channel text, p_seq bigint, p_window interval)
 RETURNS TABLE(seq bigint, event_type text, data text)
 LANGUAGE plpgsql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
#variable_conflict use_column
begin
  return query
  select o.seq, o.event_type, o.data from outbox o
  where o.channel = p_channel and o.seq > p_seq and o.created_at > statement_timestamp() - p_window
    and (o.event_type in ('chat:delete', 'chat:clear_user')
      -- Behind `{"id":"` and a UUID.
      or substr(o.data, 45, 21) in (',"type":"chat:erased"', ',"payload":"[erased]"'))
  order by o.seq;
end
$function$;

-- function outbox_shard, version 1
CREATE OR REPLACE FUNCTION public.outbox_shard(p_channel text)
 RETURNS integer
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
declare
  uuid constant text := ':([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$';
  key  bytea := convert_to(coalesce(substring(p_channel from uuid), p_channel), 'UTF8');
  m    constant bigint := 1540483477;
  low  constant bigint := 4294967295;
  size int := length(key);
  hash bigint := (2538058380 # size) & low;
  word bigint;
  i    int := 0;
begin
  while i + 4 <= size loop
    word := get_byte(key, i) + (get_byte(key, i + 1) << 8) + (get_byte(key, i + 2) << 16)
      + (get_byte(key, i + 3)::bigint << 24);
    word := (word * m) & low;
    word := ((word # (word >> 24)) * m) & low;
    hash := ((hash * m) & low) # word;
    i := i + 4;
  end loop;
  if size - i = 3 then hash := hash # (get_byte(key, i + 2)::bigint << 16); end if;
  if size - i >= 2 then hash := hash # (get_byte(key, i + 1)::bigint << 8); end if;
  if size - i >= 1 then hash := ((hash # get_byte(key, i)) * m) & low; end if;
  hash := ((hash # (hash >> 13)) * m) & low;
  hash := hash # (hash >> 15);
  return (hash & 2147483647) % 64;
end
$function$;

-- function outbox_tail, version 2
CREATE OR REPLACE FUNCTION public.outbox_tail(p_after bigint[], p_heard bytea, p_messages integer, p_bytes bigint)
 RETURNS TABLE(shard integer, id bigint, channel text, seq bigint, event_type text, data text, created_at timestamp with time zone, trace text)
 LANGUAGE plpgsql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
#variable_conflict use_column
declare
  mask constant int := octet_length(p_heard) * 8 - 1;
begin
  return query
  with active as materialized (
    select h.shard, h.id as head, p_after[h.shard + 1] as after,
      greatest(1, p_messages / count(*) over ()) as most
    from outbox_heads h where h.id > p_after[h.shard + 1]
  ), found as materialized (
    select o.shard, o.id, o.channel, o.seq, o.event_type, case when o.heard then o.data end as data,
      case when o.heard then octet_length(o.data) end as size, o.created_at, o.trace, o.heard
    from active a cross join lateral (
      select x.*, x.name_hash is null or get_bit(p_heard, x.name_hash & mask) = 1 as heard
      from outbox x where (x.shard, x.id) > (a.shard, a.after) and (x.shard, x.id) < (a.shard + 1, 0)
      order by x.shard, x.id limit a.most
    ) o
  ), given as materialized (
    select * from (
      select f.*, sum(size) over (order by id rows between unbounded preceding and 1 preceding) as before from found f
    ) sized where coalesce(before, 0) < p_bytes
  ), place as (
    select a.shard, a.head, a.after, g.last, coalesce(f.n, 0) >= a.most or coalesce(g.n, 0) < coalesce(f.n, 0) as cut
    from active a
      left join (select shard, count(*) as n from found group by shard) f on f.shard = a.shard
      left join (select shard, count(*) as n, max(id) as last from given group by shard) g on g.shard = a.shard
  ), summary as (
    -- Of a shard that was read to its end the head is the place, also where its rows are gone already.
    select string_agg(shard || ':' || case when cut or shard = 64 then coalesce(last, after) else head end, ',') as at,
      bool_or(cut) as more
    from place
  )
  select * from (
    select g.shard, g.id, g.channel, g.seq, g.event_type, g.data, g.created_at, g.trace from given g where g.heard
    union all
    select null, (select count(*) from given),
      (select string_agg(u.channel || ' ' || u.seq, e'\n' order by u.id) from given u where not u.heard),
      s.more::int, null, s.at, (select max(n.created_at) from given n), null
    from summary s where s.at is not null
  ) answer order by shard is null, id;
end
$function$;

-- function outbox_write, version 2
CREATE OR REPLACE FUNCTION public.outbox_write(p_channels text[], p_event_types text[], p_data text[], p_traces text[] DEFAULT NULL::text[])
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
  names  text[];
  shards int[];
  places int[];
begin
  select array_agg(name order by name), array_agg(outbox_shard(name) order by name) into names, shards
  from (select distinct unnest(p_channels) as name) channel;
  select array_agg(n.place order by c.nth) into places
  from unnest(p_channels) with ordinality as c (name, nth)
    join unnest(names) with ordinality as n (name, place) on n.name = c.name;
  return outbox_append(names, shards, null, places, p_event_types, p_data, p_traces);
end
$function$;

-- function shape_rebuilt_table, version 1
CREATE OR REPLACE FUNCTION public.shape_rebuilt_table(original regclass, copy regclass)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
  dimension record;
begin
  if to_regclass('timescaledb_information.dimensions') is null then return false; end if;
  select d.column_name, d.time_interval into dimension
    from timescaledb_information.dimensions d
    join pg_class c on c.relname = d.hypertable_name
    join pg_namespace n on n.oid = c.relnamespace and n.nspname = d.hypertable_schema
    where c.oid = original and d.dimension_number = 1;
  if not found then return false; end if;
  -- Its indexes are copied by their names, the one that the extension makes among them.
  perform create_hypertable(
    copy, dimension.column_name, chunk_time_interval => dimension.time_interval, create_default_indexes => false
  );
  return true;
end $function$;

-- function text_pieces, version 1
CREATE OR REPLACE FUNCTION public.text_pieces(p_text text, p_longest boolean DEFAULT false)
 RETURNS text[]
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT COST 1000
AS $function$
declare
  c text[] := string_to_array(lower(p_text), null);
  n int := cardinality(c);
  least_size int := case when p_longest then least(n, 3) else 1 end;
  pieces text[] := case when least_size = 1 then c end;
  pair text;
begin
  for i in 1 .. n - 1 loop
    pair := c[i] || c[i + 1];
    if least_size < 3 then pieces := pieces || pair; end if;
    if i < n - 1 then pieces := pieces || (pair || c[i + 2]); end if;
  end loop;
  return coalesce(pieces, '{}');
end;
$function$;

-- function work_balance, version 1
CREATE OR REPLACE FUNCTION public.work_balance(p_member uuid, p_session_lock bigint, p_names text[], p_release text[], p_patience interval)
 RETURNS TABLE(name text, wanted boolean, joined boolean)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
  v_now timestamptz;
  v_joined boolean;
begin
  perform pg_advisory_xact_lock(7070013);
  v_now := clock_timestamp();
  v_joined := not exists (select from work_members m where m.member = p_member and m.names = p_names);
  insert into work_members as m (member, session_lock, names, renewed_at)
    values (p_member, p_session_lock, p_names, v_now)
    on conflict (member) do update
      set session_lock = excluded.session_lock, names = excluded.names, renewed_at = excluded.renewed_at;
  delete from work_members m
    where m.member <> p_member
      and (m.renewed_at < v_now - p_patience or pg_try_advisory_xact_lock(m.session_lock));
  delete from work_holds h
    where (h.member = p_member and (h.name = any (p_release) or h.name <> all (p_names)))
      or not exists (select from work_members m where m.member = h.member);
  return query
    with offered as (
      select n.name, array_agg(m.member order by m.member) as members
      from work_members m cross join lateral unnest(m.names) as n (name) group by n.name
    ), counted as (
      select o.name, o.members[1 + (row_number() over (order by o.name) - 1) % cardinality(o.members)] as wanted_by
      from offered o
    ), taken as (
      insert into work_holds (name, member)
      select c.name, p_member from counted c where c.wanted_by = p_member
      on conflict do nothing
      returning name
    )
    select t.name, true, v_joined from taken t
    union all
    select h.name, c.wanted_by = p_member, v_joined
    from work_holds h join counted c on c.name = h.name where h.member = p_member
    union all
    select null::text, true, v_joined;
end $function$;

-- function work_bury, version 1
CREATE OR REPLACE FUNCTION public.work_bury(p_members uuid[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_kind text;
begin
  for v_kind in
    select unnest(m.kinds) from work_members m where m.member = any (p_members)
    union select h.kind from work_holds h where h.member = any (p_members) or h.wanted_by = any (p_members)
    order by 1
  loop
    perform pg_advisory_xact_lock(7070014, hashtext(v_kind));
    with freed as (
      delete from work_holds h where h.kind = v_kind and h.member = any (p_members) returning h.name
    )
    insert into work_freed (kind, name) select v_kind, f.name from freed f;
    update work_holds h set wanted_by = null, change = nextval('work_changes')
      where h.kind = v_kind and h.wanted_by = any (p_members);
  end loop;
  delete from work_members m where m.member = any (p_members);
end $function$;

-- function work_change, version 2
CREATE OR REPLACE FUNCTION public.work_change(p_me uuid, p_kind text, give text[], take text[], want text[], at bigint)
 RETURNS TABLE(name text)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
  v_current boolean;
begin
  perform pg_advisory_xact_lock_shared(7070013);
  perform pg_advisory_xact_lock(7070014, hashtext(p_kind));
  if not exists (select from work_members m where m.member = p_me) then return; end if;
  v_current := not exists (select from work_holds h where h.kind = p_kind and h.change > at)
    and not exists (select from work_freed f where f.kind = p_kind and f.change > at);
  update work_holds h set member = h.wanted_by, wanted_by = null, change = nextval('work_changes')
    where h.name = any (give) and h.member = p_me
      and exists (select from work_members m where m.member = h.wanted_by);
  with freed as (
    delete from work_holds h where h.name = any (give) and h.member = p_me returning h.name
  )
  insert into work_freed (kind, name) select p_kind, f.name from freed f;
  delete from work_freed f where f.kind = p_kind and f.freed_at < clock_timestamp() - interval '2 minutes';
  if v_current then
    update work_holds h set wanted_by = p_me, change = nextval('work_changes')
      where h.name = any (want) and h.member <> p_me
        -- The previous release removes the row of a dead member alone.
        and not exists (select from work_members m where m.member = h.wanted_by);
  end if;
  return query
    insert into work_holds as h (name, member)
    select t.name, p_me from unnest(take) as t (name) order by t.name
    on conflict (name) do update
      set member = excluded.member, wanted_by = null, change = nextval('work_changes')
      where not exists (select from work_members m where m.member = h.member)
    returning h.name;
end $function$;

-- function work_leave, version 2
CREATE OR REPLACE FUNCTION public.work_leave(p_member uuid)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  -- Excludes work_balance of the previous release, which locks by 7070013 alone.
  perform pg_advisory_xact_lock_shared(7070013);
  perform work_bury(array[p_member]);
end $function$;

-- function work_look, version 1
CREATE OR REPLACE FUNCTION public.work_look(p_me uuid, p_lock bigint, p_kinds text[], p_since bigint[], p_names text[])
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
declare
  v_now timestamptz;
  v_joined boolean;
  v_dead uuid[];
begin
  perform pg_advisory_xact_lock_shared(7070013);
  v_now := clock_timestamp();
  insert into work_members as m (member, session_lock, names, kinds, renewed_at)
    values (p_me, p_lock, coalesce(p_names, '{}'), p_kinds, v_now)
    on conflict (member) do update set
      session_lock = excluded.session_lock, names = coalesce(p_names, m.names), kinds = excluded.kinds,
      renewed_at = excluded.renewed_at
    returning xmax = 0 into v_joined;
  v_dead := array(
    select m.member from work_members m
    where m.member <> p_me
      and (m.renewed_at < v_now - interval '10 s' or pg_try_advisory_xact_lock(m.session_lock))
    for update skip locked);
  if cardinality(v_dead) > 0 then perform work_bury(v_dead); end if;
  return jsonb_build_object(
    'joined', v_joined,
    'older', exists (select from work_members m where m.kinds = '{}' and m.names <> '{}'),
    'members', (select jsonb_agg(jsonb_build_array(m.member, m.kinds)) from work_members m),
    'holds', (
      select coalesce(
        jsonb_agg(jsonb_build_array(c.kind, c.name, c.member, c.wanted_by, c.change) order by c.change), '[]')
      from unnest(p_kinds, p_since) as k (kind, since)
        cross join lateral (
          select h.kind, h.name, h.member, h.wanted_by, h.change from work_holds h
            where h.kind = k.kind and h.change > k.since
          union all
          select f.kind, f.name, null, null, f.change from work_freed f where f.kind = k.kind and f.change > k.since
        ) c));
end $function$;

create schema graphile_worker;

create type graphile_worker.job_spec as (identifier text, payload json, queue_name text, run_at timestamp with time zone, max_attempts smallint, job_key text, priority smallint, flags text[]);

create table graphile_worker._private_job_queues (
  id integer not null generated always as identity,
  queue_name text not null,
  locked_at timestamp with time zone,
  locked_by text,
  is_available boolean not null generated always as ((locked_at IS NULL)),
  constraint job_queues_pkey1 PRIMARY KEY (id),
  constraint job_queues_queue_name_check CHECK ((length(queue_name) <= 128)),
  constraint job_queues_queue_name_key UNIQUE (queue_name)
);

create table graphile_worker._private_jobs (
  id bigint not null generated always as identity,
  job_queue_id integer,
  task_id integer not null,
  payload json not null default '{}'::json,
  priority smallint not null default 0,
  run_at timestamp with time zone not null default now(),
  attempts smallint not null default 0,
  max_attempts smallint not null default 25,
  last_error text,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  key text,
  locked_at timestamp with time zone,
  locked_by text,
  revision integer not null default 0,
  flags jsonb,
  is_available boolean not null generated always as (((locked_at IS NULL) AND (attempts < max_attempts))),
  constraint jobs_pkey1 PRIMARY KEY (id),
  constraint jobs_key_check CHECK (((length(key) > 0) AND (length(key) <= 512))),
  constraint jobs_key_key1 UNIQUE (key),
  constraint jobs_max_attempts_check CHECK ((max_attempts >= 1))
);
CREATE INDEX jobs_main_index ON graphile_worker._private_jobs
  USING btree (priority, run_at) INCLUDE (id, task_id, job_queue_id) WHERE (is_available = true);
CREATE INDEX jobs_no_queue_index ON graphile_worker._private_jobs
  USING btree (priority, run_at) INCLUDE (id, task_id) WHERE ((is_available = true) AND (job_queue_id IS NULL));
CREATE INDEX lumio_jobs_owner ON graphile_worker._private_jobs
  USING btree (((flags ->> 'owner'::text))) WHERE (flags ? 'owner'::text);

create table graphile_worker._private_known_crontabs (
  identifier text not null,
  known_since timestamp with time zone not null,
  last_execution timestamp with time zone,
  constraint known_crontabs_pkey PRIMARY KEY (identifier)
);

create table graphile_worker._private_tasks (
  id integer not null generated always as identity,
  identifier text not null,
  constraint tasks_pkey PRIMARY KEY (id),
  constraint tasks_identifier_check CHECK ((length(identifier) <= 128)),
  constraint tasks_identifier_key UNIQUE (identifier)
);

create view graphile_worker.jobs as
 SELECT jobs.id,
    job_queues.queue_name,
    tasks.identifier AS task_identifier,
    jobs.priority,
    jobs.run_at,
    jobs.attempts,
    jobs.max_attempts,
    jobs.last_error,
    jobs.created_at,
    jobs.updated_at,
    jobs.key,
    jobs.locked_at,
    jobs.locked_by,
    jobs.revision,
    jobs.flags
   FROM ((graphile_worker._private_jobs jobs
     JOIN graphile_worker._private_tasks tasks ON ((tasks.id = jobs.task_id)))
     LEFT JOIN graphile_worker._private_job_queues job_queues ON ((job_queues.id = jobs.job_queue_id)));

create table graphile_worker.migrations (
  id integer not null,
  ts timestamp with time zone not null default now(),
  breaking boolean not null default false,
  constraint migrations_pkey PRIMARY KEY (id)
);

-- function graphile_worker.add_job
CREATE OR REPLACE FUNCTION graphile_worker.add_job(identifier text, payload json DEFAULT NULL::json, queue_name text DEFAULT NULL::text, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, max_attempts integer DEFAULT NULL::integer, job_key text DEFAULT NULL::text, priority integer DEFAULT NULL::integer, flags text[] DEFAULT NULL::text[], job_key_mode text DEFAULT 'replace'::text)
 RETURNS graphile_worker._private_jobs
 LANGUAGE plpgsql
AS $function$
declare
  v_job "graphile_worker"._private_jobs;
begin
  if (job_key is null or job_key_mode is null or job_key_mode in ('replace', 'preserve_run_at')) then
    select * into v_job
    from "graphile_worker".add_jobs(
      ARRAY[(
        identifier,
        payload,
        queue_name,
        run_at,
        max_attempts::smallint,
        job_key,
        priority::smallint,
        flags
      )::"graphile_worker".job_spec],
      (job_key_mode = 'preserve_run_at')
    )
    limit 1;
    return v_job;
  elsif job_key_mode = 'unsafe_dedupe' then
    -- Ensure all the tasks exist
    insert into "graphile_worker"._private_tasks as tasks (identifier)
    values (add_job.identifier)
    on conflict do nothing;
    -- Ensure all the queues exist
    if add_job.queue_name is not null then
      insert into "graphile_worker"._private_job_queues as job_queues (queue_name)
      values (add_job.queue_name)
      on conflict do nothing;
    end if;
    -- Insert job, but if one already exists then do nothing, even if the
    -- existing job has already started (and thus represents an out-of-date
    -- world state). This is dangerous because it means that whatever state
    -- change triggered this add_job may not be acted upon (since it happened
    -- after the existing job started executing, but no further job is being
    -- scheduled), but it is useful in very rare circumstances for
    -- de-duplication. If in doubt, DO NOT USE THIS.
    insert into "graphile_worker"._private_jobs as jobs (
      job_queue_id,
      task_id,
      payload,
      run_at,
      max_attempts,
      key,
      priority,
      flags
    )
      select
        job_queues.id,
        tasks.id,
        coalesce(add_job.payload, '{}'::json),
        coalesce(add_job.run_at, now()),
        coalesce(add_job.max_attempts::smallint, 25::smallint),
        add_job.job_key,
        coalesce(add_job.priority::smallint, 0::smallint),
        (
          select jsonb_object_agg(flag, true)
          from unnest(add_job.flags) as item(flag)
        )
      from "graphile_worker"._private_tasks as tasks
      left join "graphile_worker"._private_job_queues as job_queues
      on job_queues.queue_name = add_job.queue_name
      where tasks.identifier = add_job.identifier
    on conflict (key)
      -- Bump the updated_at so that there's something to return
      do update set
        revision = jobs.revision + 1,
        updated_at = now()
      returning *
      into v_job;
    if v_job.revision = 0 then
      perform pg_notify('jobs:insert', '{"r":' || random()::text || ',"count":1}');
    end if;
    return v_job;
  else
    raise exception 'Invalid job_key_mode value, expected ''replace'', ''preserve_run_at'' or ''unsafe_dedupe''.' using errcode = 'GWBKM';
  end if;
end;
$function$;

-- function graphile_worker.add_jobs
CREATE OR REPLACE FUNCTION graphile_worker.add_jobs(specs graphile_worker.job_spec[], job_key_preserve_run_at boolean DEFAULT false)
 RETURNS SETOF graphile_worker._private_jobs
 LANGUAGE plpgsql
AS $function$
begin
  -- Ensure all the tasks exist
  insert into "graphile_worker"._private_tasks as tasks (identifier)
  select distinct spec.identifier
  from unnest(specs) spec
  on conflict do nothing;
  -- Ensure all the queues exist
  insert into "graphile_worker"._private_job_queues as job_queues (queue_name)
  select distinct spec.queue_name
  from unnest(specs) spec
  where spec.queue_name is not null
  on conflict do nothing;
  -- Ensure any locked jobs have their key cleared - in the case of locked
  -- existing job create a new job instead as it must have already started
  -- executing (i.e. it's world state is out of date, and the fact add_job
  -- has been called again implies there's new information that needs to be
  -- acted upon).
  update "graphile_worker"._private_jobs as jobs
  set
    key = null,
    attempts = jobs.max_attempts,
    updated_at = now()
  from unnest(specs) spec
  where spec.job_key is not null
  and jobs.key = spec.job_key
  and is_available is not true;

  -- WARNING: this count is not 100% accurate; 'on conflict' clause will cause it to be an overestimate
  perform pg_notify('jobs:insert', '{"r":' || random()::text || ',"count":' || array_length(specs, 1)::text || '}');

  -- TODO: is there a risk that a conflict could occur depending on the
  -- isolation level?
  return query insert into "graphile_worker"._private_jobs as jobs (
    job_queue_id,
    task_id,
    payload,
    run_at,
    max_attempts,
    key,
    priority,
    flags
  )
    select
      job_queues.id,
      tasks.id,
      coalesce(spec.payload, '{}'::json),
      coalesce(spec.run_at, now()),
      coalesce(spec.max_attempts, 25),
      spec.job_key,
      coalesce(spec.priority, 0),
      (
        select jsonb_object_agg(flag, true)
        from unnest(spec.flags) as item(flag)
      )
    from unnest(specs) spec
    inner join "graphile_worker"._private_tasks as tasks
    on tasks.identifier = spec.identifier
    left join "graphile_worker"._private_job_queues as job_queues
    on job_queues.queue_name = spec.queue_name
  on conflict (key) do update set
    job_queue_id = excluded.job_queue_id,
    task_id = excluded.task_id,
    payload =
      case
      when json_typeof(jobs.payload) = 'array' and json_typeof(excluded.payload) = 'array' then
        (jobs.payload::jsonb || excluded.payload::jsonb)::json
      else
        excluded.payload
      end,
    max_attempts = excluded.max_attempts,
    run_at = (case
      when job_key_preserve_run_at is true and jobs.attempts = 0 then jobs.run_at
      else excluded.run_at
    end),
    priority = excluded.priority,
    revision = jobs.revision + 1,
    flags = excluded.flags,
    -- always reset error/retry state
    attempts = 0,
    last_error = null,
    updated_at = now()
  where jobs.locked_at is null
  returning *;
end;
$function$;

-- function graphile_worker.complete_jobs
CREATE OR REPLACE FUNCTION graphile_worker.complete_jobs(job_ids bigint[])
 RETURNS SETOF graphile_worker._private_jobs
 LANGUAGE sql
AS $function$
  delete from "graphile_worker"._private_jobs as jobs
    where id = any(job_ids)
    and (
      locked_at is null
    or
      locked_at < now() - interval '4 hours'
    )
    returning *;
$function$;

-- function graphile_worker.force_unlock_workers
CREATE OR REPLACE FUNCTION graphile_worker.force_unlock_workers(worker_ids text[])
 RETURNS void
 LANGUAGE sql
AS $function$
update "graphile_worker"._private_jobs as jobs
set locked_at = null, locked_by = null
where locked_by = any(worker_ids);
update "graphile_worker"._private_job_queues as job_queues
set locked_at = null, locked_by = null
where locked_by = any(worker_ids);
$function$;

-- function graphile_worker.permanently_fail_jobs
CREATE OR REPLACE FUNCTION graphile_worker.permanently_fail_jobs(job_ids bigint[], error_message text DEFAULT NULL::text)
 RETURNS SETOF graphile_worker._private_jobs
 LANGUAGE sql
AS $function$
  update "graphile_worker"._private_jobs as jobs
    set
      last_error = coalesce(error_message, 'Manually marked as failed'),
      attempts = max_attempts,
      updated_at = now()
    where id = any(job_ids)
    and (
      locked_at is null
    or
      locked_at < NOW() - interval '4 hours'
    )
    returning *;
$function$;

-- function graphile_worker.remove_job
CREATE OR REPLACE FUNCTION graphile_worker.remove_job(job_key text)
 RETURNS graphile_worker._private_jobs
 LANGUAGE plpgsql
 STRICT
AS $function$
declare
  v_job "graphile_worker"._private_jobs;
begin
  -- Delete job if not locked
  delete from "graphile_worker"._private_jobs as jobs
    where key = job_key
    and (
      locked_at is null
    or
      locked_at < NOW() - interval '4 hours'
    )
  returning * into v_job;
  if not (v_job is null) then
    perform pg_notify('jobs:insert', '{"r":' || random()::text || ',"count":-1}');
    return v_job;
  end if;
  -- Otherwise prevent job from retrying, and clear the key
  update "graphile_worker"._private_jobs as jobs
  set
    key = null,
    attempts = jobs.max_attempts,
    updated_at = now()
  where key = job_key
  returning * into v_job;
  return v_job;
end;
$function$;

-- function graphile_worker.reschedule_jobs
CREATE OR REPLACE FUNCTION graphile_worker.reschedule_jobs(job_ids bigint[], run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, priority integer DEFAULT NULL::integer, attempts integer DEFAULT NULL::integer, max_attempts integer DEFAULT NULL::integer)
 RETURNS SETOF graphile_worker._private_jobs
 LANGUAGE sql
AS $function$
  update "graphile_worker"._private_jobs as jobs
    set
      run_at = coalesce(reschedule_jobs.run_at, jobs.run_at),
      priority = coalesce(reschedule_jobs.priority::smallint, jobs.priority),
      attempts = coalesce(reschedule_jobs.attempts::smallint, jobs.attempts),
      max_attempts = coalesce(reschedule_jobs.max_attempts::smallint, jobs.max_attempts),
      updated_at = now()
    where id = any(job_ids)
    and (
      locked_at is null
    or
      locked_at < NOW() - interval '4 hours'
    )
    returning *;
$function$;
