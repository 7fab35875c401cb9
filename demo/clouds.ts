import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { PLATFORMS, type Platform } from '../domain/common/vendors';
import type { Beat } from './story';
import { createVendorRequests, type DemoCredentials } from './vendor-requests';

/** Posts to the server as the demo's owner; returns the body. */
export type Post = (path: string, body: object, method?: string) => Promise<Record<string, string>>;

/** Delivers an event of Kick as its webhook does. */
export type Kicked = (type: string, payload: object) => Promise<void>;

/** Login of the demo's owner at a provider. */
export interface DemoLogin {
  provider: string;
  provider_id: string;
  access_token: string;
}

/** Local stand-ins for the vendors' clouds. */
export interface DemoClouds {
  /** Settings with the stand-ins' addresses. */
  env(): Record<string, string>;
  /** Registers the connected channels, by the platforms' ids. */
  open(channels: Record<Platform, string>, kicked: Kicked): void;
  /** Links the owner's logins: `link` is called while the providers identify their tokens. */
  logIn(link: (login: DemoLogin) => Promise<void>): Promise<void>;
  /** Authorization code of a platform's login after the owner's consent. */
  code(platform: Platform, owner: string): string;
  /** Connects the account to the vendors besides the platforms. */
  connectOthers(account_id: string, post: Post, return_to: string): Promise<void>;
  /** Resolves when Lumio is connected to all of them, or after a while. */
  listened(): Promise<void>;
  /** Plays a beat at its vendor; false for beats of other vendors, and for those that arrive as webhooks. */
  play(beat: Beat): boolean;
  close(): Promise<void>;
}

/** @throws Error in a release without the stand-ins */
export async function startClouds(): Promise<DemoClouds> {
  const file = join(__dirname, '../test/vendors/demo-clouds');
  if (!existsSync(`${file}.js`))
    throw new Error('the demo’s vendors are no part of this build: run it from a checkout');
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- absent from a build for production
  const { startDemoClouds } = require(file) as { startDemoClouds(): Promise<DemoClouds> };
  return startDemoClouds();
}

export interface ConnectingCredentials extends DemoCredentials {
  base_url: string;
  account_id: string;
  access_token: string;
  connections: DemoCredentials['connections'] & Record<Platform, { platform_channel_id: string }>;
}

/** Connects the demo's channels by a login at their platforms, as their owner would in a browser. */
export async function connectClouds(clouds: DemoClouds, credentials: ConnectingCredentials): Promise<void> {
  const { base_url, account_id, access_token, connections } = credentials;
  const ids = PLATFORMS.map((platform) => [platform, connections[platform].platform_channel_id] as const);
  const { kick } = createVendorRequests(credentials);
  clouds.open(Object.fromEntries(ids) as Record<Platform, string>, async (type, payload) => {
    const { path, headers, body } = kick(type, payload);
    await fetch(new URL(path, base_url), { method: 'POST', headers, body });
  });
  const post: Post = async (path, body, method = 'POST') => {
    const headers = { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' };
    const answer = await fetch(new URL(path, base_url), { method, headers, body: JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path} ${answer.status} ${text.slice(0, 200)}`);
    return JSON.parse(text) as Record<string, string>;
  };
  const return_to = `${process.env['LUMIO_HOSTS__WEB']}/connections`;
  for (const [platform, owner] of ids) {
    const path = `/v1/connections/oauth/${platform}`;
    const { state } = await post(`${path}/start`, { kind: 'channel', return_to });
    await post(`${path}/exchange`, { code: clouds.code(platform, owner), state });
  }
  await clouds.logIn(async (login) => {
    await post('/v1/auth/link', login);
  });
  await clouds.connectOthers(account_id, post, return_to);
  await clouds.listened();
}
