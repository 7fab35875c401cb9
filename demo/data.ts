import { randomBytes } from 'node:crypto';
import { v7 } from 'uuid';
import { load } from '../app/write-path/aggregate-cache';
import type { KeyKind } from '../access/authentication/contexts';
import { generateKey } from '../access/authentication/keys';
import { apiKey, apiKeyStream } from '../domain/credentials/api-keys';
import { KNOWN_FLAGS, PLAN_CATEGORIES } from '../domain/operators/feature-flags';
import { ACCOUNT_PERMISSIONS, ADMIN_PERMISSIONS } from '../domain/common/permissions';
import { systemKey, systemKeyStream } from '../domain/credentials/system-keys';
import type { Platform } from '../domain/common/vendors';
import { LOCKS } from '../engines/locks/port';
import { createAccount, setFeatures } from '../cli/admin/accounts';
import { connectChannel, connectShop, OtherChannelConnected } from '../cli/admin/connections';
import { nowText, type AdminServices } from '../cli/admin/shared/operator';
import { createUser, setAdminRole } from '../cli/admin/users';
import { step } from './step';

/** Demo user and the account that the user owns. */
export interface DemoOwner {
  user_id: string;
  account_id: string;
}

/** Demo data chosen by the first start and sealed in the database, so that every start of any node uses the same. */
export interface DemoData {
  owner: DemoOwner;
  other: DemoOwner;
  channels: Record<Platform, { connection_id: string; platform_channel_id: string }>;
  shop: { connection_id: string; shop_domain: string; secret: string };
  user_api_key: DemoKey;
  system_key: DemoKey;
}

interface DemoKey {
  key_id: string;
  key: string;
  hash: string;
  prefix: string;
}

const CHANNELS: Record<Platform, string> = {
  twitch: '141981764',
  youtube: 'UCLumioDemoChannel000001',
  kick: '987650001',
  trovo: '100000021',
};
const SHOP_DOMAIN = 'lumio-demo.myshopify.com';
/** Purpose under which the demo data are sealed. */
export const DEMO_PLAN = 'demo-data';

/**
 * Creates the demo data of development: a user with an account that is connected to a channel of each platform and to a
 * shop, and a second, unrelated user and account; every feature on for both, the super admin role only for the first.
 * Each start repeats all steps idempotently, so that it completes an interrupted one. Source: design §9, spec rulings
 * "demo data".
 */
export async function ensureDemoData(services: AdminServices): Promise<DemoData> {
  return services.db.transaction(async (tx) => {
    // The transaction is idle during each command below, however slow the machine is.
    await tx.query('set local idle_in_transaction_session_timeout = 0');
    // Nodes that start at the same time create one set of demo data.
    await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.demo_data]);
    const data = await plan(services);
    await makeOwner(services, data.owner, 'Demo Streamer', 'Demo Account');
    await makeOwner(services, data.other, 'Other Streamer', 'Other Account');
    await setAdminRole(services, data.owner.user_id, 'super-admin', true);
    await connect(services, data);
    await makeKeys(services, data);
    return data;
  });
}

/** Demo data of earlier starts; null without any. */
export async function readDemoData({ db, secrets }: Pick<AdminServices, 'db' | 'secrets'>): Promise<DemoData | null> {
  const [row] = await db.query(`select value from installation where name = 'demo'`);
  return row ? (JSON.parse(secrets.open(row.value as string, DEMO_PLAN).toString()) as DemoData) : null;
}

async function plan(services: AdminServices): Promise<DemoData> {
  const data = (await readDemoData(services)) ?? newPlan();
  const key = await load(services.events, apiKey, apiKeyStream(data.user_api_key.key_id));
  const system = await load(services.events, systemKey, systemKeyStream(data.system_key.key_id));
  // A revoked demo key stays revoked; the next start creates another.
  if (key?.state.status === 'revoked') data.user_api_key = newKey('user_api_key');
  if (system?.state.status === 'revoked') data.system_key = newKey('system_key');
  await services.db.query(
    `insert into installation (name, value) values ('demo', $1) on conflict (name) do update
       set value = excluded.value`,
    [services.secrets.seal(JSON.stringify(data), DEMO_PLAN)],
  );
  return data;
}

function newPlan(): DemoData {
  const channels = Object.entries(CHANNELS).map(([platform, platform_channel_id]) => [
    platform,
    { connection_id: v7(), platform_channel_id },
  ]);
  return {
    owner: { user_id: v7(), account_id: v7() },
    other: { user_id: v7(), account_id: v7() },
    channels: Object.fromEntries(channels) as DemoData['channels'],
    shop: { connection_id: v7(), shop_domain: SHOP_DOMAIN, secret: randomBytes(32).toString('hex') },
    user_api_key: newKey('user_api_key'),
    system_key: newKey('system_key'),
  };
}

const newKey = (kind: KeyKind): DemoKey => ({ key_id: v7(), ...generateKey(kind) });

async function makeOwner(
  services: AdminServices,
  { user_id, account_id }: DemoOwner,
  display_name: string,
  name: string,
): Promise<void> {
  await createUser(services, { user_id, display_name });
  await createAccount(services, { account_id, owner_id: user_id, name });
  const flags = KNOWN_FLAGS.filter((flag) => PLAN_CATEGORIES.has(flag.category)).map((flag) => [flag.key, true]);
  await setFeatures(services, account_id, Object.fromEntries(flags));
}

async function connect(services: AdminServices, { owner, channels, shop }: DemoData): Promise<void> {
  const { account_id } = owner;
  for (const [platform, channel] of Object.entries(channels) as [Platform, DemoData['channels'][Platform]][])
    await connectChannel(services, { account_id, platform, channel_name: 'lumio_demo', ...channel }).catch(leaveOther);
  await connectShop(services, { account_id, ...shop });
}

/** Ignores that somebody has connected a channel of their own instead. */
function leaveOther(error: unknown): void {
  if (!(error instanceof OtherChannelConnected)) throw error;
}

async function makeKeys(services: AdminServices, { owner, user_api_key, system_key }: DemoData): Promise<void> {
  const of = ({ key_id, hash, prefix }: DemoKey) => ({
    key_id,
    key_hash: hash,
    key_prefix: prefix,
    label: 'Demo',
    now: nowText(),
  });
  const done = ['KEY_EXISTS'];
  const permissions = [...ACCOUNT_PERMISSIONS];
  await step(services, {
    decider: apiKey,
    stream: apiKeyStream(user_api_key.key_id),
    command: { type: 'api_key:create', ...of(user_api_key), ...owner, permissions, expires_at: null },
    done,
  });
  const resources = new Set(
    [...ACCOUNT_PERMISSIONS, ...ADMIN_PERMISSIONS].map((name) => `${name.slice(0, name.indexOf(':'))}:*`),
  );
  await step(services, {
    decider: systemKey,
    stream: systemKeyStream(system_key.key_id),
    command: { type: 'system_key:create', ...of(system_key), permissions: [...resources] },
    done,
  });
}
