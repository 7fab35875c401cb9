import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../engines/log/port';
import type { Services } from '../access/services';
import { actFor } from '../access/act';
import { openSession } from '../access/sessions';
import { asOperator, OPERATOR } from '../cli/admin/operator';
import type { DemoData } from './data';

/** Webhook secrets of development, as the vendors' side holds them. */
interface DevelopmentSecrets {
  youtube_secret: string;
  kick_public_key: string;
  kick_private_key: string;
  kick_secret: string;
  trovo_secret: string;
  stripe_secret: string;
  stripe_connect_secret: string;
}

/** Secrets that this process has made, by where they are to be kept. */
const made = new Map<string, DevelopmentSecrets>();

const pathOf = (data_dir: string): string => join(data_dir, 'dev-secrets.json');

/**
 * Settings of development for webhooks that nobody has configured: those of `<data dir>/dev-secrets.json`, else new
 * ones, which {@link keepDevelopmentSecrets} writes down. The result is a part of the settings tree; what the person
 * has set wins over it.
 */
export function developmentSecrets(data_dir: string): Record<string, Record<string, string>> {
  const secrets = secretsOf(pathOf(data_dir));
  return {
    webhooks: {
      youtube_secret: secrets.youtube_secret,
      kick_public_key: secrets.kick_public_key,
      kick_secret: secrets.kick_secret,
      trovo_secret: secrets.trovo_secret,
    },
    stripe: { webhook_secret: secrets.stripe_secret },
    payments: { stripe_connect_webhook_secret: secrets.stripe_connect_secret },
  };
}

/**
 * Writes them where they are not kept yet (mode 0600): once a start is sure, so that one that is refused leaves
 * nothing.
 */
export function keepDevelopmentSecrets(data_dir: string): void {
  const path = pathOf(data_dir);
  if (existsSync(path)) return;
  const secrets = secretsOf(path);
  mkdirSync(data_dir, { recursive: true, mode: 0o755 });
  const draft = `${path}.${process.pid}`;
  const file = openSync(draft, 'w', 0o600);
  writeSync(file, JSON.stringify(secrets, null, 2));
  fsyncSync(file);
  closeSync(file);
  renameSync(draft, path);
}

function secretsOf(path: string): DevelopmentSecrets {
  if (existsSync(path)) return JSON.parse(readFileSync(path, 'utf8')) as DevelopmentSecrets;
  const secrets = made.get(path) ?? newSecrets();
  made.set(path, secrets);
  return secrets;
}

function newSecrets(): DevelopmentSecrets {
  const pair = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const secret = () => randomBytes(24).toString('hex');
  return {
    youtube_secret: secret(),
    kick_public_key: pair.publicKey,
    kick_private_key: pair.privateKey,
    kick_secret: secret(),
    trovo_secret: secret(),
    stripe_secret: `whsec_${secret()}`,
    stripe_connect_secret: `whsec_${secret()}`,
  };
}

export interface DevCredentialsDeps {
  services: Pick<Services, 'db' | 'events' | 'commit' | 'awaitShown' | 'tokens' | 'settings'>;
  demo: DemoData;
  log: Logger;
  base_url: string;
  ws_url: string;
  metrics_url: string;
}

/**
 * Keeps `<data dir>/dev-credentials.json` (mode 0600) true: written now, and again at half the life of its access
 * tokens, each time with new sessions and each time whole or not at all. Shape: design §9. Resolves when it is written
 * the first time, with the owner's access token in it.
 */
export async function keepDevCredentials(
  deps: DevCredentialsDeps,
): Promise<{ access_token: string; stop(): Promise<void> }> {
  const { settings } = deps.services;
  const access_token = await write(deps);
  let writing: Promise<unknown> = Promise.resolve();
  const timer = setInterval(
    () => {
      writing = write(deps).catch((error: unknown) =>
        deps.log.warn({ err: error }, 'dev-credentials.json could not be written'),
      );
    },
    Math.max(1000, settings.auth.access_token_expiration / 2),
  );
  timer.unref();
  return {
    access_token,
    async stop() {
      clearInterval(timer);
      await writing;
    },
  };
}

async function write({ services, demo, base_url, ws_url, metrics_url }: DevCredentialsDeps): Promise<string> {
  const { settings } = services;
  const { owner, other, channels, shop } = demo;
  const login = ({ user_id, account_id }: DemoData['owner']) => {
    const operator = asOperator(OPERATOR);
    const acting = { act: actFor(operator, services), context: operator.context };
    return openSession(acting, services, { user_id, account_id, provider: null });
  };
  const session = await login(owner);
  const others = await login(other);
  const secrets = secretsOf(pathOf(settings.data_dir));
  const channel = ({ platform_channel_id }: { platform_channel_id: string }) => ({ platform_channel_id });
  const credentials = {
    base_url,
    ws_url,
    metrics_url,
    account_id: owner.account_id,
    user_id: owner.user_id,
    access_token: session.access.token,
    refresh_token: session.refresh.token,
    user_api_key: demo.user_api_key.key,
    system_key: demo.system_key.key,
    connections: {
      twitch: channel(channels.twitch),
      youtube: channel(channels.youtube),
      kick: channel(channels.kick),
      trovo: channel(channels.trovo),
      shopify: { shop_domain: shop.shop_domain },
    },
    webhook_signing: {
      youtube_secret: settings.webhooks.youtube_secret,
      // Of a public key that someone configured, the private half is theirs alone.
      kick_private_key: settings.webhooks.kick_public_key === secrets.kick_public_key ? secrets.kick_private_key : '',
      kick_secret: settings.webhooks.kick_secret,
      trovo_secret: settings.webhooks.trovo_secret,
      shopify_secret: shop.secret,
      stripe_secret: settings.stripe.webhook_secret,
      stripe_connect_secret: settings.payments.stripe_connect_webhook_secret,
    },
    other: { account_id: other.account_id, user_id: other.user_id, access_token: others.access.token },
  };
  const path = join(settings.data_dir, 'dev-credentials.json');
  const draft = `${path}.${process.pid}`;
  const file = await open(draft, 'w', 0o600);
  try {
    await file.writeFile(`${JSON.stringify(credentials, null, 2)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
  return credentials.access_token;
}
