import { z } from 'zod';
import {
  app,
  baseUrl,
  duration,
  flag,
  httpUrl,
  integer,
  isBlobAddress,
  listOf,
  origin,
  origins,
  secret,
  socketUrl,
  strings,
} from './setting-kinds';

export const ROLES = ['api', 'ingest', 'projector', 'realtime', 'worker'] as const;
export type Role = (typeof ROLES)[number];

/** Where metrics are served when nobody chose a port. */
export const METRICS_PORT = 7071;

/**
 * Every setting of Lumio, with its default. A dotted key `webhooks.kick_secret` is `webhooks: {kick_secret}` in
 * `lumio.config.json` and `LUMIO_WEBHOOKS__KICK_SECRET` in the environment. Sources: design §9, spec/config.json.
 */
export const SettingsSchema = z.strictObject({
  /** Resolved before the schema is applied: a non-loopback host without it is refused. */
  env: z.enum(['development', 'production']).default('development'),
  host: z.string().min(1).default('127.0.0.1'),
  port: integer(0, 65535).default(7070),
  public_url: httpUrl.optional(),
  data_dir: z.string().min(1).default('.lumio'),
  roles: z.preprocess(listOf, z.array(z.enum(ROLES)).min(1)).default([...ROLES]),
  trusted_proxies: strings.default([]),
  allowed_origins: origins.default([]),
  /** Longest time between a signal and the end of the process; a supervisor's patience is usually 10 s. */
  stop_within: duration('9s'),
  log_level: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  database: z
    .strictObject({
      /** Absent: a PostgreSQL of our own in the data folder. */
      url: z.string().optional(),
      pool_size: integer(2, 200).default(12),
      /** How long a request may wait for one statement; commands, upkeep and projections are not bound by it. */
      statement_timeout: duration('10s').refine((ms) => ms >= 3000, 'must be 3s or more'),
    })
    .prefault({}),
  event_store: z.strictObject({ url: z.string().default('postgres') }).prefault({}),
  read_models: z
    .strictObject({
      /** How long an answer waits for the read models of what was written; then it says that they are behind. */
      wait: duration('2s'),
    })
    .prefault({}),
  broker: z
    .strictObject({
      url: z.string().default('postgres'),
      partitions: integer(1, 1024).default(8),
      /** Kafka: copies of each partition. */
      replication: integer(1, 9).default(1),
      tls: flag.default(false),
      /**
       * Kafka: certificates (PEM, or the path of a PEM file) of a private authority; absent: those that Node trusts.
       */
      tls_ca: z.string().min(1).optional(),
      /** Kafka: our own certificate and its key (PEM, or the paths of PEM files), for brokers that ask for one. */
      tls_cert: z.string().min(1).optional(),
      tls_key: z.string().min(1).optional(),
      sasl_mechanism: z.enum(['plain', 'scram-sha-256', 'scram-sha-512']).optional(),
      sasl_username: z.string().optional(),
      sasl_password: z.string().optional(),
      /** Confluent-compatible schema registry; absent: the ids fixed in the repository. */
      schema_registry_url: httpUrl.optional(),
    })
    .prefault({}),
  redis: z.strictObject({ url: z.string().optional() }).prefault({}),
  blobs: z
    .strictObject({
      /**
       * A folder, or `s3://KEY:SECRET@host:port/bucket?region=…&tls=false&create=true` (`create` makes a missing
       * bucket); absent: `<data_dir>/blobs`.
       */
      url: z
        .string()
        .refine(isBlobAddress, 'must be a folder, or s3://KEY:SECRET@host:port/bucket?region=…&tls=false')
        .optional(),
    })
    .prefault({}),
  archive: z
    .strictObject({
      /** Moves records older than `archive.after` from the topics to the blob store. */
      enabled: flag.default(false),
      after: duration('30d'),
      /**
       * Whether what is archived, and applied by every projection, leaves the topic. Off: the topics keep everything as
       * well.
       */
      trim: flag.default(false),
    })
    .prefault({}),
  secrets: z
    .strictObject({
      /** `id:base64 of 32 bytes`, several by commas, the first one writes. */
      keys: z.string().optional(),
    })
    .prefault({}),
  auth: z
    .strictObject({
      access_token_expiration: duration('15m'),
      session_lifetime: duration('30d'),
      ws_token_expiration: duration('15m'),
      /** SHA-256 hex of a system key, `=`, its grants joined by `+`; several by commas. */
      system_keys: strings.default([]),
      /**
       * For a machine without apps at the providers, refused in production: `development:<id>[:<name>]` is an access
       * token of every provider.
       */
      development_logins: flag.default(false),
    })
    .prefault({}),
  graphql: z.strictObject({ playground: flag.optional() }).prefault({}),
  docs: z.strictObject({ swagger_ui: flag.optional(), openapi_json: flag.optional() }).prefault({}),
  metrics: z
    .strictObject({
      host: z.string().default('127.0.0.1'),
      /**
       * Absent: {@link METRICS_PORT}, or any free one where that is taken or `port` is 0, since several servers may
       * share a machine.
       */
      port: integer(0, 65535).optional(),
    })
    .prefault({}),
  webhooks: z
    .strictObject({
      require_signatures: flag.default(true),
      youtube_secret: secret,
      kick_public_key: secret,
      kick_secret: secret,
      trovo_secret: secret,
    })
    .prefault({}),
  stripe: z.strictObject({ webhook_secret: secret }).prefault({}),
  payments: z
    .strictObject({
      stripe_connect_webhook_secret: secret,
      allow_unsigned_webhooks: flag.default(false),
      paypal_webhook_id: secret,
    })
    .prefault({}),
  /** The app that asks PayPal whether a delivery of payouts is its own; `payments.paypal_webhook_id` belongs to it. */
  paypal: z
    .strictObject({ client_id: secret, client_secret: secret, api_url: baseUrl('https://api-m.paypal.com') })
    .prefault({}),
  /**
   * Apps that people log in with; several ids of one by commas (web, phone). Without one nobody logs in there. The
   * first one with its secret is the app that channels and bots are connected with, where no operator has set another.
   */
  twitch: z
    .strictObject({
      ...app,
      id_url: baseUrl('https://id.twitch.tv'),
      api_url: baseUrl('https://api.twitch.tv'),
      eventsub_url: socketUrl('wss://eventsub.wss.twitch.tv/ws'),
    })
    .prefault({}),
  google: z
    .strictObject({
      ...app,
      id_url: baseUrl('https://accounts.google.com'),
      token_url: baseUrl('https://oauth2.googleapis.com'),
      api_url: baseUrl('https://www.googleapis.com'),
      /** Units of YouTube's Data API that an app may use in a day. */
      daily_quota: integer(0, 1_000_000_000).default(10_000),
    })
    .prefault({}),
  kick: z
    .strictObject({
      ...app,
      id_url: baseUrl('https://id.kick.com'),
      api_url: baseUrl('https://api.kick.com'),
    })
    .prefault({}),
  trovo: z
    .strictObject({
      ...app,
      id_url: baseUrl('https://open.trovo.live'),
      api_url: baseUrl('https://open-api.trovo.live'),
      chat_url: socketUrl('wss://open-chat.trovo.live/chat'),
    })
    .prefault({}),
  live: z
    .strictObject({
      /** How often connected channels are looked at; absent: as often as finds a stream's beginning within a minute. */
      look_every: duration('0s').transform((ms) => ms || undefined),
    })
    .prefault({}),
  /** `bot_token`: of the bot that is let into the accounts' servers; without one their members are not heard of. */
  discord: z.strictObject({ ...app, bot_token: secret, api_url: baseUrl('https://discord.com') }).prefault({}),
  streamelements: z
    .strictObject({
      api_url: baseUrl('https://api.streamelements.com'),
      astro_url: socketUrl('wss://astro.streamelements.com'),
    })
    .prefault({}),
  spotify: z
    .strictObject({
      ...app,
      id_url: baseUrl('https://accounts.spotify.com'),
      api_url: baseUrl('https://api.spotify.com'),
    })
    .prefault({}),
  /** Where people may be sent back to after a vendor's login; without one nobody can connect anything from there. */
  hosts: z.strictObject({ web: origin.optional(), admin: origin.optional() }).prefault({}),
  outgoing: z
    .strictObject({
      /**
       * Refused in production: calls to the outside may lead to this machine and to private networks, over plain http
       * too. Without it, in development, they may when the address of a vendor is such a one.
       */
      allow_loopback: flag.default(false),
    })
    .prefault({}),
  /** Where to tell of a weakness, as `/.well-known/security.txt` says it (RFC 9116); both or none. */
  security: z
    .strictObject({
      /** `mailto:`, `https:` or `tel:` addresses, by commas. */
      contact: z
        .preprocess(
          listOf,
          z.array(
            z.string().regex(/^(?:mailto:|https:\/\/|tel:)[\x21-\x7e]+$/, 'must be a mailto:, https: or tel: address'),
          ),
        )
        .default([]),
      /** From when on nobody should go by it; RFC 3339, in UTC. */
      expires: z.iso.datetime('must be a time like 2027-01-01T00:00:00Z').optional(),
    })
    .prefault({}),
  realtime: z
    .strictObject({
      resume_window: duration('600s'),
    })
    .prefault({}),
  tracing: z
    .strictObject({
      /** OTLP/HTTP endpoint; absent: no export. */
      otlp_url: httpUrl.optional(),
      /** Share of the traces that begin here that is kept; a caller's own `traceparent` decides for itself. */
      sample_ratio: z.coerce.number().min(0).max(1).default(1),
    })
    .prefault({}),
});

export type Settings = Readonly<z.output<typeof SettingsSchema>>;
