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
  loginApp,
  origin,
  origins,
  secret,
  socketUrl,
  strings,
} from './kinds';

export const ROLES = ['api', 'ingest', 'projector', 'realtime', 'worker'] as const;
export type Role = (typeof ROLES)[number];

/** Where metrics are served when nobody chose a port. */
export const METRICS_PORT = 7071;

/** Default of what only development serves. */
const IN_DEVELOPMENT = 'on in development';

/** Room for one body of the largest size. */
const MIN_BODY_BYTES = 1024 * 1024;

/** Sections of docs/operating/settings.md that hold several sections of the schema. */
const DATABASE = { title: 'Database and read models' };
const LOGS = { title: 'Event store and broker' };
const BLOBS = { title: 'Blobs and archive' };
const HISTORY = { title: 'Stream history' };
const ACCESS = { title: 'Keys, tokens and logins' };
const PAGES = { title: 'Explorers and documents' };
const MEASURES = { title: 'Metrics and traces' };
const WEBHOOKS = {
  title: 'Webhooks',
  description:
    'Several secrets of one vendor, separated by commas (or PEM blocks), are all accepted, so that a secret can be ' +
    'replaced without a gap. [The first day](first-day.md#3-channels-and-shops) names their sources.',
};
const VENDORS = {
  title: 'Apps and addresses of vendors',
  description:
    'The first id of an app and its secret are together the app that connects channels and bots, unless an operator ' +
    'has set another. Addresses are for tests: an address of this machine or of a private network (a mock) is ' +
    'accepted in development only.',
};
const OUTSIDE = { title: 'Calls to vendors' };

/**
 * Every setting of Lumio, with its default and its meaning, from which `npm run documents` writes
 * docs/operating/settings.md. `unset` describes the default of a setting that has none in the schema. A dotted key
 * `webhooks.kick_secret` is `webhooks: {kick_secret}` in `lumio.config.json` and `LUMIO_WEBHOOKS__KICK_SECRET` in the
 * environment. Sources: design §9, spec/config.json.
 */
export const SettingsSchema = z.strictObject({
  /** Resolved before the schema is applied: a non-loopback host without it is refused. */
  env: z
    .enum(['development', 'production'])
    .default('development')
    .describe(
      '`production` hides explorers, documents and demo data. Required if `LUMIO_HOST` is no loopback address. A ' +
        'database belongs to the environment of its first start, and `lumio start --adopt` moves it',
    ),
  host: z.string().min(1).default('127.0.0.1').describe('Address that the server listens on'),
  port: integer(0, 65535).default(7070).describe('Port that the server listens on, 0 is any free one'),
  public_url: httpUrl
    .optional()
    .describe('Address of the installation for clients; links and `Location` begin with it, and are paths without it'),
  data_dir: z.string().min(1).default('.lumio').describe('Folder of the embedded engines: database, blobs, keys'),
  roles: z
    .preprocess(listOf, z.array(z.enum(ROLES)).min(1))
    .default([...ROLES])
    .describe('[Roles](roles.md) of the process, separated by commas; fewer than all need `LUMIO_REDIS__URL`'),
  trusted_proxies: strings
    .default([])
    .describe('Proxies whose `X-Forwarded-For` is trusted: addresses and networks, separated by commas'),
  allowed_origins: origins
    .default([])
    .describe(
      'Origins whose pages may call the API, separated by commas. Pages of a listed origin may send cookies; `*` ' +
        'allows all others without cookies. `null` (sandboxed frames) and `file://` (local files) allow only sockets ' +
        'with a token in the query',
    ),
  stop_within: duration('9s').describe(
    'Longest time between a signal and the end of the process; most supervisors wait 10 s',
  ),
  log_level: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .describe('Lowest level of the log lines that are written'),
  requests: z
    .strictObject({
      members: integer(100, 1_000_000)
        .default(10_000)
        .describe('Most members of objects and elements of arrays in a JSON body, of a caller with a credential'),
      anonymous_members: integer(100, 1_000_000).default(1_000).describe('The same, of a caller without a credential'),
      address_body_bytes: integer(MIN_BODY_BYTES, 1_000_000_000)
        .default(32 * 1024 * 1024)
        .describe('Most bytes of bodies of one address that are held at a time; signed webhooks do not count'),
      body_bytes: integer(4 * MIN_BODY_BYTES, 10_000_000_000)
        .default(256 * 1024 * 1024)
        .describe(
          'Most bytes of bodies that the process holds at a time. A quarter is for callers without a credential, half ' +
            'for webhooks',
        ),
      emitted_bytes: integer(MIN_BODY_BYTES, 1_000_000_000)
        .default(20 * 1024 * 1024)
        .describe('Most bytes of `raw` that a credential emits in a minute; test events are counted apart'),
      body_progress: duration('20s')
        .refine((ms) => ms >= 100, 'must be 100ms or more')
        .describe('Longest time in which nothing of a body arrives; then the request is refused with 408'),
    })
    .prefault({})
    .meta({ title: 'Requests' }),
  database: z
    .strictObject({
      url: z.string().optional().meta({
        unset: 'embedded',
        description: 'Address of a PostgreSQL; needs `LUMIO_SECRETS__KEYS`. Without it, one runs in the data folder',
      }),
      pool_size: integer(2, 200).default(12).describe('Connections of the pool `main` of the process'),
      statement_timeout: duration('10s')
        .refine((ms) => ms >= 3000, 'must be 3s or more')
        .describe(
          'Longest time that a request waits for one statement, at least `3s`; commands of `lumio`, upkeep and ' +
            'projections have limits of their own',
        ),
    })
    .prefault({})
    .meta(DATABASE),
  event_store: z
    .strictObject({
      url: z.string().default('postgres').describe('`postgres`, or a KurrentDB: `kurrentdb://…`, `esdb://…`'),
    })
    .prefault({})
    .meta(LOGS),
  read_models: z
    .strictObject({
      wait: duration('2s').describe(
        'Longest time that the answer to a write waits for the read models of its events; then it reports that they ' +
          'are behind',
      ),
    })
    .prefault({})
    .meta(DATABASE),
  broker: z
    .strictObject({
      url: z.string().default('postgres').describe('`postgres`, or the brokers of a Kafka: `kafka://h1:9092,h2:9092`'),
      partitions: integer(1, 1024)
        .default(8)
        .describe('Partitions of topics that Lumio creates; existing topics keep theirs'),
      replication: integer(1, 9)
        .default(1)
        .describe('Kafka: copies of each partition of topics that Lumio creates; 3 in production'),
      tls: flag.default(false).describe('Kafka: TLS to the brokers'),
      tls_ca: z.string().min(1).optional().meta({
        unset: 'authorities that Node trusts',
        description: 'Kafka: certificates of a private authority, which alone is then trusted: PEM, or a path to it',
      }),
      tls_cert: z
        .string()
        .min(1)
        .optional()
        .describe('Kafka: the certificate of Lumio, for brokers that require one: PEM, or a path to it'),
      tls_key: z
        .string()
        .min(1)
        .optional()
        .describe('Kafka: the key of that certificate, without a passphrase: PEM, or a path to it'),
      sasl_mechanism: z
        .enum(['plain', 'scram-sha-256', 'scram-sha-512'])
        .optional()
        .describe('Kafka: mechanism of the login'),
      sasl_username: z.string().optional().describe('Kafka: name of the login'),
      sasl_password: z.string().optional().describe('Kafka: password of the login'),
      schema_registry_url: httpUrl
        .optional()
        .describe(
          'A Confluent-compatible schema registry, for other programs that read the same Kafka; without it, records ' +
            'have the schema ids of the repository',
        ),
    })
    .prefault({})
    .meta(LOGS),
  redis: z
    .strictObject({
      url: z.string().optional().describe('Redis or Valkey, for relay, cache, limits and presence across processes'),
    })
    .prefault({})
    .meta({ title: 'Redis' }),
  blobs: z
    .strictObject({
      url: z
        .string()
        .refine(isBlobAddress, 'must be a folder, or s3://KEY:SECRET@host:port/bucket?region=…&tls=false')
        .optional()
        .meta({
          unset: 'folder `blobs` in the data folder',
          description:
            'A folder, or `s3://KEY:SECRET@host:port/bucket?region=…&tls=false`; `&create=true` creates a missing ' +
            'bucket',
        }),
    })
    .prefault({})
    .meta(BLOBS),
  archive: z
    .strictObject({
      enabled: flag
        .default(false)
        .describe('Copies records older than `LUMIO_ARCHIVE__AFTER` from the topics to the blob store'),
      after: duration('30d').describe('Age from which records are archived'),
      trim: flag
        .default(false)
        .describe('Deletes archived records from the topics, after every projection has applied them'),
    })
    .prefault({})
    .meta(BLOBS),
  lake: z
    .strictObject({
      url: z
        .string()
        .refine(isBlobAddress, 'must be a folder, or s3://KEY:SECRET@host:port/bucket?region=…&tls=false')
        .optional()
        .meta({ unset: 'no lake', description: 'Place of the [lake](lake.md): a folder, or as `LUMIO_BLOBS__URL`' }),
      persons: z
        .enum(['hash', 'clear'])
        .default('hash')
        .describe('`clear` adds names, texts and raw data to the files of the lake'),
    })
    .prefault({})
    .meta(BLOBS),
  history: z
    .strictObject({
      session_grace: duration('5m').describe('Longest gap between two broadcasts of one session of stream history'),
      count_every: duration('5s').describe('Interval at which sessions of stream history are joined and counted'),
      bots: strings
        .optional()
        .meta({ unset: 'well-known bots' })
        .describe('Chatters that count in no figure: `<platform>:<user id>`, separated by commas'),
    })
    .prefault({})
    .meta(HISTORY),
  secrets: z
    .strictObject({
      keys: z
        .string()
        .optional()
        .meta({
          unset: 'created in the data folder',
          description:
            'Master keys, each `id:base64 of 32 bytes`, separated by commas; the first one encrypts. Required with ' +
            'an external database',
        }),
    })
    .prefault({})
    .meta(ACCESS),
  auth: z
    .strictObject({
      access_token_expiration: duration('15m').describe('Lifetime of access tokens'),
      session_lifetime: duration('30d').describe('Lifetime of sessions and their refresh tokens'),
      ws_token_expiration: duration('15m').describe('Lifetime of tokens that only open WebSockets'),
      system_keys: strings
        .default([])
        .describe(
          'System keys that must exist before the database: `<SHA-256 of the key, hex>=<grant>+<grant>`, separated ' +
            'by commas',
        ),
      development_logins: flag
        .default(false)
        .describe(
          'Accepts `development:<id>[:<name>]` as an access token of every provider, for a machine without apps at ' +
            'the providers; refused in production',
        ),
    })
    .prefault({})
    .meta(ACCESS),
  graphql: z
    .strictObject({
      playground: flag
        .optional()
        .meta({ unset: IN_DEVELOPMENT, description: 'Serves `/v1/graphiql` and answers introspection' }),
    })
    .prefault({})
    .meta(PAGES),
  docs: z
    .strictObject({
      swagger_ui: flag.optional().meta({ unset: IN_DEVELOPMENT, description: 'Serves `/v1/swagger-ui/`' }),
      openapi_json: flag
        .optional()
        .meta({ unset: IN_DEVELOPMENT, description: 'Serves `/v1/openapi.json` and `/v1/asyncapi.json`' }),
    })
    .prefault({})
    .meta(PAGES),
  metrics: z
    .strictObject({
      host: z.string().default('127.0.0.1').describe('Address that serves metrics for Prometheus'),
      port: integer(0, 65535)
        .optional()
        .meta({
          unset: `\`${METRICS_PORT}\`, or a free one`,
          description:
            'Port that serves metrics. If it is not set, any free one when the default is taken or `LUMIO_PORT` is ' +
            '0, because several servers may share a machine',
        }),
    })
    .prefault({})
    .meta(MEASURES),
  webhooks: z
    .strictObject({
      require_signatures: flag
        .default(true)
        .describe('Rejects webhooks of a vendor or shop without a secret; otherwise they are accepted unsigned'),
      youtube_secret: secret.describe('The `hub.secret` of YouTube’s hub'),
      kick_public_key: secret.describe('Kick’s public key: RSA, PEM'),
      kick_secret: secret.describe('Kick, legacy: HMAC secret'),
      trovo_secret: secret.describe('Trovo: HMAC secret'),
    })
    .prefault({})
    .meta(WEBHOOKS),
  stripe: z
    .strictObject({ webhook_secret: secret.describe('Stripe: `whsec_…` of the endpoint `/v1/webhooks/stripe`') })
    .prefault({})
    .meta(WEBHOOKS),
  payments: z
    .strictObject({
      stripe_connect_webhook_secret: secret.describe(
        'Stripe Connect: `whsec_…` of the endpoint `/v1/webhooks/stripe-connect`',
      ),
      allow_unsigned_webhooks: flag
        .default(false)
        .describe(
          'Accepts unsigned webhooks of Stripe Connect as long as its secret is not set; refused in production',
        ),
      paypal_webhook_id: secret.describe('PayPal: id of the webhook `/v1/webhooks/paypal-payouts`'),
    })
    .prefault({})
    .meta(WEBHOOKS),
  paypal: z
    .strictObject({
      client_id: secret.describe('PayPal: id of the app that verifies deliveries of this webhook'),
      client_secret: secret.describe('PayPal: secret of this app'),
      api_url: baseUrl('https://api-m.paypal.com').describe(
        'PayPal’s API; the sandbox is `https://api-m.sandbox.paypal.com`',
      ),
    })
    .prefault({})
    .meta(WEBHOOKS),
  twitch: z
    .strictObject({
      ...loginApp('Twitch'),
      id_url: baseUrl('https://id.twitch.tv').describe('Twitch’s logins'),
      api_url: baseUrl('https://api.twitch.tv').describe('Twitch’s API'),
      eventsub_url: socketUrl('wss://eventsub.wss.twitch.tv/ws').describe('Twitch’s EventSub WebSocket'),
      conduits: flag
        .default(true)
        .describe(
          'Receives channels over one conduit of the app, as far as their owners have consented. Off on any worker, ' +
            'or without the app’s secret: one socket for each channel ([0057](../decisions/0057-twitch-conduits.md))',
        ),
      conduit_shards: integer(1, 1_000).default(4).describe('Sockets of the conduit, divided among the workers'),
      subscription_calls: integer(1, 20)
        .default(6)
        .describe(
          'Subscription calls that a channel’s own socket makes at a time, while its user’s bucket has as many',
        ),
    })
    .prefault({})
    .meta(VENDORS),
  google: z
    .strictObject({
      ...loginApp('Google'),
      id_url: baseUrl('https://accounts.google.com').describe('Google’s logins'),
      token_url: baseUrl('https://oauth2.googleapis.com').describe('Google’s issuer of tokens'),
      api_url: baseUrl('https://www.googleapis.com').describe('Google’s APIs, YouTube’s among them'),
      daily_quota: integer(0, 1_000_000_000)
        .default(10_000)
        .describe('Units of YouTube’s Data API that an app may use in a day'),
      api_key: secret.describe(
        'API key of the same Google project; with it the crawler of public statistics reads YouTube, by units that ' +
          'connected channels leave',
      ),
    })
    .prefault({})
    .meta(VENDORS),
  emotes: z
    .strictObject({
      seventv_url: baseUrl('https://7tv.io').describe('Emotes of 7TV'),
      bttv_url: baseUrl('https://api.betterttv.net').describe('Emotes of BetterTTV'),
      ffz_url: baseUrl('https://api.frankerfacez.com').describe('Emotes of FrankerFaceZ'),
      youtube_url: baseUrl('https://www.gstatic.com').describe('Standard emojis of YouTube’s chats'),
    })
    .prefault({})
    .meta(VENDORS),
  kick: z
    .strictObject({
      ...loginApp('Kick'),
      id_url: baseUrl('https://id.kick.com').describe('Kick’s logins'),
      api_url: baseUrl('https://api.kick.com').describe('Kick’s API'),
    })
    .prefault({})
    .meta(VENDORS),
  trovo: z
    .strictObject({
      ...loginApp('Trovo'),
      id_url: baseUrl('https://open.trovo.live').describe('Trovo’s logins'),
      api_url: baseUrl('https://open-api.trovo.live').describe('Trovo’s API'),
      chat_url: socketUrl('wss://open-chat.trovo.live/chat').describe('Trovo’s chat WebSocket'),
    })
    .prefault({})
    .meta(VENDORS),
  live: z
    .strictObject({
      look_every: duration('0s')
        .transform((ms) => ms || undefined)
        .meta({
          unset: 'by vendor',
          description: 'Period of the polls for channels on air; the default finds a stream’s start within a minute',
        }),
    })
    .prefault({})
    .meta(OUTSIDE),
  discord: z
    .strictObject({
      ...loginApp('Discord'),
      bot_token: secret.describe(
        'Token of the bot that accounts invite to their servers; without it, nothing is received from or posted in them',
      ),
      api_url: baseUrl('https://discord.com').describe('Discord’s API and logins'),
    })
    .prefault({})
    .meta(VENDORS),
  streamelements: z
    .strictObject({
      api_url: baseUrl('https://api.streamelements.com').describe('StreamElements’ API'),
      astro_url: socketUrl('wss://astro.streamelements.com').describe('StreamElements’ WebSocket, Astro'),
    })
    .prefault({})
    .meta(VENDORS),
  spotify: z
    .strictObject({
      ...app({
        client_id: 'Id of the app at Spotify that accounts connect with',
        client_secret: 'Secret of that app',
      }),
      id_url: baseUrl('https://accounts.spotify.com').describe('Spotify’s logins'),
      api_url: baseUrl('https://api.spotify.com').describe('Spotify’s API'),
    })
    .prefault({})
    .meta(VENDORS),
  hosts: z
    .strictObject({
      web: origin
        .optional()
        .describe(
          'Site to which a vendor’s login returns users, like `https://app.example`; without it, users cannot ' +
            'connect anything from there',
        ),
      admin: origin.optional().describe('The same for the site of operators'),
      overlay: origin
        .optional()
        .describe('Origin on which alone the pages of overlays and widgets are served, like `https://live.example`'),
    })
    .prefault({})
    .meta(ACCESS),
  outgoing: z
    .strictObject({
      allow_loopback: flag
        .default(false)
        .describe(
          'Allows calls to this machine and to private networks, also over plain http. Refused in production; in ' +
            'development on by itself if a vendor has such an address',
        ),
    })
    .prefault({})
    .meta(OUTSIDE),
  security: z
    .strictObject({
      contact: z
        .preprocess(
          listOf,
          z.array(
            z.string().regex(/^(?:mailto:|https:\/\/|tel:)[\x21-\x7e]+$/, 'must be a mailto:, https: or tel: address'),
          ),
        )
        .default([])
        .describe('Contacts for reports: `mailto:`, `https:` or `tel:` addresses, separated by commas'),
      expires: z.iso
        .datetime('must be a time like 2027-01-01T00:00:00Z')
        .optional()
        .describe('Time at which the contacts expire, in UTC, like `2027-01-01T00:00:00Z`'),
    })
    .prefault({})
    .meta({
      title: 'Security reports',
      description: 'The content of `/.well-known/security.txt` (RFC 9116). Set both, or neither.',
    }),
  realtime: z
    .strictObject({
      resume_window: duration('600s').describe('Time for which messages are kept for clients that come back'),
    })
    .prefault({})
    .meta({ title: 'WebSocket' }),
  tracing: z
    .strictObject({
      otlp_url: httpUrl.optional().describe('An OTLP/HTTP collector for traces; without it, none are exported'),
      sample_ratio: z.coerce
        .number()
        .min(0)
        .max(1)
        .default(1)
        .describe('Share of the traces that begin here that is kept; a caller’s `traceparent` decides for itself'),
    })
    .prefault({})
    .meta(MEASURES),
});

export type Settings = Readonly<z.output<typeof SettingsSchema>>;
