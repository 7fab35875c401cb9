import { createPrivateKey, randomUUID, type KeyObject } from 'node:crypto';
import { PATIENCE_MS } from './patience';
import type { DevCredentials } from './server';
import { hmac, kickHeaders } from './webhooks';

export interface Posted {
  status: number;
  text: string;
}

/** The vendors' side of a running server: signs with its development secrets and posts through the front door. */
export class VendorCloud {
  private readonly kick_key: KeyObject;
  /** Subscription that Kick names in its deliveries; undefined: none. */
  kick_subscription: string | undefined;

  constructor(
    readonly base_url: string,
    private readonly credentials: DevCredentials,
  ) {
    this.kick_key = createPrivateKey(credentials.webhook_signing.kick_private_key);
  }

  /** Posts bytes as they are. */
  async post(path: string, body: Buffer | string, headers: Record<string, string>): Promise<Posted> {
    const response = await fetch(`${this.base_url}${path}`, {
      method: 'POST',
      headers,
      body: new Uint8Array(Buffer.from(body)),
    });
    return { status: response.status, text: await response.text() };
  }

  kickFollow(user_id: number, message_id: string = randomUUID(), at = new Date().toISOString()): Promise<Posted> {
    const body = Buffer.from(
      `{"broadcaster":{"user_id":${this.credentials.connections.kick.platform_channel_id},"username":"lumio_demo"},` +
        `"follower":{"user_id":${user_id},"username":"viewer_${user_id}"}}`,
    );
    return this.kick('channel.followed', body, message_id, at);
  }

  /** A line in the chat of the channel on Kick; returns its id. */
  async kickLine(content: string, { user_id = 42, message_id = randomUUID() as string } = {}): Promise<string> {
    const at = new Date().toISOString();
    const identity = { username_color: '#ffffff', badges: [] };
    const body = {
      ...{ message_id, content, emotes: null, created_at: at },
      broadcaster: { user_id: Number(this.credentials.connections.kick.platform_channel_id) },
      sender: { user_id, username: `Name ${user_id}`, channel_slug: `name-${user_id}`, identity },
    };
    const posted = await this.kick('chat.message.sent', Buffer.from(JSON.stringify(body)), message_id, at);
    if (posted.status !== 200) throw new Error(`a line on Kick: ${posted.status}`);
    return message_id;
  }

  kick(type: string, body: Buffer, message_id: string = randomUUID(), at = new Date().toISOString()): Promise<Posted> {
    const headers = kickHeaders(body, type, message_id, at, this.kick_key);
    const { kick_subscription } = this;
    return this.post('/v1/webhooks/kick', body, {
      ...headers,
      ...(kick_subscription !== undefined && { 'kick-event-subscription-id': kick_subscription }),
    });
  }

  trovo(payload: object): Promise<Posted> {
    const { connections, webhook_signing } = this.credentials;
    const body = Buffer.from(JSON.stringify({ channel_id: connections.trovo.platform_channel_id, ...payload }));
    return this.post('/v1/webhooks/trovo', body, {
      'content-type': 'application/json',
      'x-trovo-signature': hmac('sha256', webhook_signing.trovo_secret, body, 'hex'),
    });
  }

  youtube(video_id: string, title: string): Promise<Posted> {
    const { connections, webhook_signing } = this.credentials;
    const now = new Date().toISOString();
    const body = Buffer.from(
      `<feed xmlns:yt="http://www.youtube.com/xml/schemas/2015" xmlns="http://www.w3.org/2005/Atom"><entry>` +
        `<yt:videoId>${video_id}</yt:videoId><yt:channelId>${connections.youtube.platform_channel_id}</yt:channelId>` +
        `<title>${title}</title><published>${now}</published><updated>${now}</updated></entry></feed>`,
    );
    return this.post('/v1/webhooks/youtube', body, {
      'content-type': 'application/atom+xml',
      'x-hub-signature': `sha1=${hmac('sha1', webhook_signing.youtube_secret, body, 'hex')}`,
    });
  }

  shopify(topic: string, body: Buffer, event_id: string = randomUUID()): Promise<Posted> {
    const { connections, webhook_signing } = this.credentials;
    return this.post('/v1/webhooks/shopify', body, {
      'content-type': 'application/json',
      'x-shopify-topic': topic,
      'x-shopify-shop-domain': connections.shopify.shop_domain,
      'x-shopify-event-id': event_id,
      'x-shopify-hmac-sha256': hmac('sha256', webhook_signing.shopify_secret, body, 'base64'),
    });
  }
}

/** A caller of the query APIs, by bearer token. */
export class ApiClient {
  constructor(
    readonly base_url: string,
    private readonly token: string,
    /** Headers of every request. */
    private readonly common: Record<string, string> = {},
  ) {}

  async get(path: string): Promise<{ status: number; body: any; text: string }> {
    const headers = { authorization: `Bearer ${this.token}`, ...this.common };
    const response = await fetch(`${this.base_url}${path}`, { headers });
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text), text };
  }

  async send(method: string, path: string, body: unknown, headers: Record<string, string> = {}) {
    const response = await fetch(`${this.base_url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        'content-type': 'application/json',
        ...this.common,
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text), headers: response.headers };
  }

  async gql(query: string, variables: object = {}): Promise<any> {
    return (await this.send('POST', '/v1/gql', { query, variables })).body;
  }

  /** Every event of the account that matches, over all pages. */
  async allEvents(filter = ''): Promise<any[]> {
    const events: any[] = [];
    for (let page = 1; ; page += 1) {
      const { status, body, text } = await this.get(`/v1/events?limit=100&page=${page}${filter}`);
      if (status !== 200) throw new Error(`GET /v1/events: ${status} ${text}`);
      events.push(...body.data);
      if (page >= body._meta.pages) return events;
    }
  }
}

const FIRST_PAUSE_MS = 25;
/** Requests of a minute are limited, and a busy machine has other things to do. */
const LONGEST_PAUSE_MS = 250;

/** Waits until `look` gives something other than undefined; looks less often the longer it lasts. */
export async function eventually<T>(look: () => Promise<T | undefined>, what: string, ms = PATIENCE_MS): Promise<T> {
  const deadline = Date.now() + ms;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(1.1 * pause, LONGEST_PAUSE_MS)) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((wait) => setTimeout(wait, pause));
  }
}
