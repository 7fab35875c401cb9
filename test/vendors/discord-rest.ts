import type { FakeAnswer, FakeCall } from './cloud';

export interface PostedMessage {
  id: string;
  channel_id: string;
  content: string;
  allowed_mentions: unknown;
  reply_to: string | null;
}

/** A channel of a server: type 0 is text, 2 voice, 5 announcements. */
export interface FakeChannel {
  id: string;
  name: string;
  type: number;
  position: number;
}

interface Window {
  used: number;
  resets_at: number;
}

/** Type of an answer with a message. */
const WITH_MESSAGE = 4;
const NAME = /^[-_'\p{L}\p{N}]{1,32}$/u;
const json = (status: number, body?: unknown, headers: Record<string, string> = {}): FakeAnswer =>
  body === undefined ? { status, headers } : { status, headers, body };
const UNKNOWN_CHANNEL = { message: 'Unknown Channel', code: 10003 };

/** Discord's REST: channels, messages, commands, interactions, and the limits of its buckets. */
export class FakeDiscordRest {
  /** Channels by server. */
  readonly channels = new Map<string, FakeChannel[]>();
  readonly guilds = new Map<string, { owner_id: string; roles: { id: string; permissions: string }[] }>();
  readonly posted: PostedMessage[] = [];
  /** Commands by server. */
  readonly commands = new Map<string, { name: string; description: string }[]>();
  readonly acknowledged: { id: string; token: string; type: number }[] = [];
  /** Answers of interactions by token. */
  readonly answers = new Map<string, string[]>();
  /** Calls of a window. */
  limit = 5;
  window_ms = 1_000;
  /** Calls beyond a limit that was announced. */
  exceeded = 0;
  /** Names that it refuses besides malformed ones. */
  readonly refused_names = new Set<string>();
  /** Seconds for which every call is refused. */
  stopped_until = 0;
  private readonly windows = new Map<string, Window>();
  private last_id = 10n ** 18n;

  /** Answers a call of the bot; undefined for other paths. */
  answer(call: FakeCall, isBot: boolean): FakeAnswer {
    const { method, path } = call;
    const at = `${method} ${path.replace('/api/v10', '')}`;
    const [, interaction, token] = /^POST \/interactions\/(\d+)\/([^/]+)\/callback$/.exec(at) ?? [];
    if (token !== undefined) return this.acknowledge(interaction!, token, JSON.parse(call.body));
    const [, of] = /^PATCH \/webhooks\/\d+\/([^/]+)\/messages\/@original$/.exec(at) ?? [];
    if (of !== undefined) return this.followUp(of, JSON.parse(call.body).content as string);
    const route = ROUTES.find(({ pattern }) => pattern.test(at));
    if (route === undefined) return undefined;
    if (!isBot) return json(401, { message: '401: Unauthorized', code: 0 });
    const [, id] = route.pattern.exec(at)!;
    const limited = this.limited(route.bucket, id!);
    if ('status' in limited) return limited;
    return { ...this[route.serve](id!, call.body), headers: limited.headers };
  }

  textOf = (channel_id: string): string[] =>
    this.posted.filter((message) => message.channel_id === channel_id).map(({ content }) => content);

  private limited(bucket: string, major: string): { status: number } | { headers: Record<string, string> } {
    const now = Date.now();
    const key = `${bucket}:${major}`;
    const before = this.windows.get(key);
    const window = before && before.resets_at > now ? before : { used: 0, resets_at: now + this.window_ms };
    this.windows.set(key, window);
    const after_s = (window.resets_at - now) / 1000;
    const headers = {
      'x-ratelimit-limit': String(this.limit),
      'x-ratelimit-remaining': String(Math.max(0, this.limit - window.used - 1)),
      'x-ratelimit-reset': String(window.resets_at / 1000),
      'x-ratelimit-reset-after': after_s.toFixed(3),
      'x-ratelimit-bucket': bucket,
    };
    const stopped_s = (this.stopped_until - now) / 1000;
    if (stopped_s > 0) {
      const body = { message: 'You are being rate limited.', retry_after: stopped_s, global: true };
      return json(429, body, { 'retry-after': String(Math.ceil(stopped_s)), 'x-ratelimit-global': 'true' }) as never;
    }
    if (window.used >= this.limit) {
      this.exceeded += 1;
      const body = { message: 'You are being rate limited.', retry_after: after_s, global: false };
      return json(429, body, { ...headers, 'retry-after': String(Math.ceil(after_s)) }) as never;
    }
    window.used += 1;
    return { headers };
  }

  showApplication(): { status: number; body: unknown } {
    return { status: 200, body: { id: '4242', name: 'Lumio' } };
  }

  showGuild(guild_id: string): { status: number; body: unknown } {
    const guild = this.guilds.get(guild_id);
    return guild === undefined
      ? { status: 404, body: { message: 'Unknown Guild', code: 10004 } }
      : { status: 200, body: { id: guild_id, ...guild } };
  }

  listChannels(guild_id: string): { status: number; body: unknown } {
    const channels = this.channels.get(guild_id);
    return channels === undefined
      ? { status: 404, body: { message: 'Unknown Guild', code: 10004 } }
      : { status: 200, body: channels };
  }

  takeMessage(channel_id: string, text: string): { status: number; body: unknown } {
    const { content, allowed_mentions, message_reference } = JSON.parse(text);
    const isThere = [...this.channels.values()].flat().some(({ id }) => id === channel_id);
    if (!isThere) return { status: 404, body: UNKNOWN_CHANNEL };
    if (typeof content !== 'string' || content === '' || [...content].length > 2_000)
      return { status: 400, body: { message: 'Invalid Form Body', code: 50035 } };
    this.last_id += 1n;
    const id = String(this.last_id);
    this.posted.push({ id, channel_id, content, allowed_mentions, reply_to: message_reference?.message_id ?? null });
    return { status: 200, body: { id, channel_id, content } };
  }

  takeCommands(guild_id: string, text: string): { status: number; body: unknown } {
    const commands = JSON.parse(text) as { name: string; description: string }[];
    const isBad = ({ name, description }: (typeof commands)[number]) =>
      !NAME.test(name) || name !== name.toLowerCase() || this.refused_names.has(name) || !description;
    const errors = commands.flatMap((one, at) =>
      isBad(one)
        ? [[at, { name: { _errors: [{ code: 'APPLICATION_COMMAND_INVALID_NAME', message: 'invalid' }] } }]]
        : [],
    );
    if (errors.length > 0)
      return { status: 400, body: { message: 'Invalid Form Body', code: 50035, errors: Object.fromEntries(errors) } };
    if (commands.length > 100) return { status: 400, body: { message: 'Maximum number of commands', code: 30032 } };
    this.commands.set(guild_id, commands);
    return { status: 200, body: commands };
  }

  private acknowledge(
    id: string,
    token: string,
    { type, data }: { type: number; data?: { content: string; flags: number } },
  ): FakeAnswer {
    if (this.acknowledged.some((one) => one.id === id))
      return json(400, { message: 'Interaction has already been acknowledged.', code: 40060 });
    this.acknowledged.push({ id, token, type });
    if (type === WITH_MESSAGE) this.answers.set(token, [data!.content]);
    return json(204);
  }

  private followUp(token: string, content: string): FakeAnswer {
    if (!this.acknowledged.some((one) => one.token === token))
      return json(404, { message: 'Unknown Webhook', code: 10015 });
    this.answers.set(token, [...(this.answers.get(token) ?? []), content]);
    return json(200, { id: '1', content });
  }
}

const ROUTES = [
  { pattern: /^GET \/applications\/(@me)$/, bucket: 'b-application', serve: 'showApplication' },
  { pattern: /^GET \/guilds\/(\d+)$/, bucket: 'b-guild', serve: 'showGuild' },
  { pattern: /^GET \/guilds\/(\d+)\/channels$/, bucket: 'b-channels', serve: 'listChannels' },
  { pattern: /^POST \/channels\/(\d+)\/messages$/, bucket: 'b-messages', serve: 'takeMessage' },
  { pattern: /^PUT \/applications\/\d+\/guilds\/(\d+)\/commands$/, bucket: 'b-commands', serve: 'takeCommands' },
] as const;
