import { z } from 'zod';
import { isPassing } from '../../kernel/failures';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import { pause } from '../../lib/async/signal';
import { bodyAs } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpAnswer, HttpClients, HttpRequest } from '../http/port';
import { DiscordLimited, DiscordRefused } from './port';
import type { DiscordBuckets, DiscordLimits, DiscordRest, DiscordRoute, TakenCall } from './port';

const CALL_MS = 5_000;
/** Longest wait for a bucket in the process; a longer one is the caller's. */
const LONGEST_WAIT_MS = 2_000;
/** Pause after a 429 without a time. */
const LIMITED_MS = 5_000;
/** Greatest plausible number of a limit: a day in milliseconds. */
const MAX_NUMBER = 86_400_000;
/** Types of channels with text: ordinary ones, and those of announcements. */
const TEXT_CHANNELS: ReadonlySet<number> = new Set([0, 5]);
/** Answer with a message, at once or deferred. */
const MESSAGE = 4;
const DEFERRED = 5;
/** Flag of a message that only the user of an interaction sees. */
const EPHEMERAL = 1 << 6;
/** Commands of the kind that is typed. */
const CHAT_INPUT = 1;
/** A parameter that is text. */
const STRING = 3;

const Channels = z.array(
  z.object({ id: z.string(), name: z.string().nullish(), type: z.int(), position: z.int().nullish() }),
);
const Guild = z.object({
  owner_id: z.string().nullish(),
  roles: z.array(z.object({ id: z.string(), permissions: z.string().regex(/^\d{1,30}$/) })),
});
const Posted = z.object({ id: z.string() });
const Refusal = z.object({ message: z.string().nullish(), code: z.int().nullish(), errors: z.unknown().optional() });
const Limited = z.object({ retry_after: z.number().nullish(), global: z.boolean().nullish() });

export interface DiscordRestOptions {
  api_url: string;
  bot_token: string;
}

interface Call extends Pick<HttpRequest, 'method'> {
  path: string;
  json?: unknown;
  /** Null for the answers of an interaction: each has a limit of its own, above the one call that it gets. */
  route: DiscordRoute | null;
}

/** Discord's REST, within the limits that it announces. */
export function discordRest(
  http: HttpClients,
  { api_url, bot_token }: DiscordRestOptions,
  buckets: DiscordBuckets,
): DiscordRest {
  const client = http.client('discord-rest', [hostOf(api_url)]);

  let application_id: string | null = null;

  async function call({ method, path, json, route }: Call): Promise<HttpAnswer> {
    if (bot_token === '') throw new DiscordRefused(401, null, 'the installation has no bot of Discord');
    const taken = route === null ? null : await takeCall(buckets, route);
    const asked = client.call({
      method,
      url: `${api_url}/api/v10${path}`,
      headers: {
        accept: 'application/json',
        ...(route !== null && { authorization: `Bot ${bot_token}` }),
        ...(json !== undefined && { 'content-type': 'application/json' }),
      },
      ...(json !== undefined && { body: JSON.stringify(json) }),
      deadline_ms: CALL_MS,
      repeatable: false,
      repeat_limited: false,
      ...(route?.major && { part: route.major }),
    });
    const answer = await asked.catch(async (error: unknown) => {
      // A call of unknown outcome may still arrive.
      if (error instanceof NotSent && route !== null && taken !== null) await buckets.answered(route, taken, null);
      throw error;
    });
    if (answer.status === 429) {
      const { retry_after, global } = bodyAs(answer, Limited) ?? {};
      const asked_ms = typeof retry_after === 'number' ? Math.ceil(retry_after * 1000) : answer.retry_after_ms;
      const retry_after_ms = asked_ms ?? LIMITED_MS;
      if (taken !== null) await buckets.refused(taken, retry_after_ms, global === true);
      throw new DiscordLimited(retry_after_ms);
    }
    if (route !== null && taken !== null) await buckets.answered(route, taken, limitsOf(answer));
    const { status } = answer;
    if (status >= 200 && status < 300) return answer;
    if (status >= 500 || status < 400) throw new OutcomeUnknown(`Discord answered ${status}`);
    const { message, code, errors } = bodyAs(answer, Refusal) ?? {};
    throw new DiscordRefused(
      status,
      code ?? null,
      message?.slice(0, 300) ?? `Discord answered ${status}`,
      paths(errors),
    );
  }

  return {
    async textChannels(guild_id) {
      const path = `/guilds/${encodeURIComponent(guild_id)}/channels`;
      const route = { name: 'GET /guilds/{id}/channels', major: guild_id };
      const channels = bodyAs(await call({ method: 'GET', path, route }), Channels);
      if (channels === undefined) throw new OutcomeUnknown('Discord answered with no list of channels');
      return channels
        .filter(({ type }) => TEXT_CHANNELS.has(type))
        .sort((one, other) => (one.position ?? 0) - (other.position ?? 0) || (one.id < other.id ? -1 : 1))
        .map(({ id, name, type }) => ({ id, name: name ?? '', type }));
    },
    async roles(guild_id) {
      const path = `/guilds/${encodeURIComponent(guild_id)}`;
      const guild = bodyAs(
        await call({ method: 'GET', path, route: { name: 'GET /guilds/{id}', major: guild_id } }),
        Guild,
      );
      if (guild === undefined) throw new OutcomeUnknown('Discord answered with no server');
      const permissions = guild.roles.map(({ id, permissions: bits }) => [id, BigInt(bits)] as const);
      return { owner_id: guild.owner_id ?? null, permissions: new Map(permissions) };
    },
    async post(channel_id, { text, reply_to }) {
      const answer = await call({
        method: 'POST',
        path: `/channels/${encodeURIComponent(channel_id)}/messages`,
        route: { name: 'POST /channels/{id}/messages', major: channel_id },
        json: {
          content: text,
          allowed_mentions: { parse: [], replied_user: false },
          ...(reply_to && { message_reference: { message_id: reply_to, fail_if_not_exists: false } }),
        },
      });
      return bodyAs(answer, Posted)?.id ?? '';
    },
    async applicationId() {
      if (application_id !== null) return application_id;
      const route = { name: 'GET /applications/@me', major: '' };
      const application = bodyAs(await call({ method: 'GET', path: '/applications/@me', route }), Posted);
      if (application === undefined) throw new OutcomeUnknown('Discord answered with no application');
      return (application_id = application.id);
    },
    async registerCommands(of_application, guild_id, commands) {
      const [application, guild] = [of_application, guild_id].map(encodeURIComponent);
      await call({
        method: 'PUT',
        path: `/applications/${application}/guilds/${guild}/commands`,
        route: { name: 'PUT /applications/{id}/guilds/{id}/commands', major: guild_id },
        json: commands.map(({ name, description }) => ({
          ...{ name, description, type: CHAT_INPUT },
          options: [{ type: STRING, name: 'text', description: 'Text after the command', required: false }],
        })),
      });
    },
    async acknowledge(interaction) {
      await call({ method: 'POST', path: callbackOf(interaction), route: null, json: { type: DEFERRED } });
    },
    async refuse(interaction, text) {
      const data = { content: text, flags: EPHEMERAL, allowed_mentions: { parse: [] } };
      await call({ method: 'POST', path: callbackOf(interaction), route: null, json: { type: MESSAGE, data } });
    },
    async answerInteraction(of_application, token, text) {
      const [application, of] = [of_application, token].map(encodeURIComponent);
      const path = `/webhooks/${application}/${of}/messages/@original`;
      const json = { content: text, allowed_mentions: { parse: [] } };
      await call({ method: 'PATCH', path, route: null, json });
    },
  };
}

const callbackOf = ({ id, token }: { id: string; token: string }): string =>
  `/interactions/${encodeURIComponent(id)}/${encodeURIComponent(token)}/callback`;

/**
 * Waits for a call of the bucket and for its turn.
 * @throws DiscordLimited when the wait is too long; NotSent while the limits cannot be read
 */
async function takeCall(buckets: DiscordBuckets, route: DiscordRoute): Promise<TakenCall> {
  try {
    return await waitForCall(buckets, route);
  } catch (error) {
    throw isPassing(error) ? new NotSent('the limits of Discord cannot be read now', { cause: error }) : error;
  }
}

async function waitForCall(buckets: DiscordBuckets, route: DiscordRoute): Promise<TakenCall> {
  const until = performance.now() + LONGEST_WAIT_MS;
  for (;;) {
    const taken = await buckets.take(route);
    if ('key' in taken) {
      if (taken.turn_ms > 0) await pause(taken.turn_ms, new AbortController().signal);
      return taken;
    }
    if (performance.now() + taken.wait_ms > until) throw new DiscordLimited(taken.wait_ms);
    await pause(taken.wait_ms, new AbortController().signal);
  }
}

/** Limits in the headers of an answer. */
function limitsOf({ headers }: Pick<HttpAnswer, 'headers'>): DiscordLimits | null {
  const numberIn = (name: string) => Number(headers[name] ?? Number.NaN);
  const [limit, remaining] = [numberIn('x-ratelimit-limit'), numberIn('x-ratelimit-remaining')];
  const reset_after_ms = Math.ceil(numberIn('x-ratelimit-reset-after') * 1000);
  if (![limit, remaining, reset_after_ms].every((number) => number >= 0 && number <= MAX_NUMBER)) return null;
  return { bucket: headers['x-ratelimit-bucket'] ?? null, limit, remaining, reset_after_ms };
}
/** Paths of the fields in Discord's nested errors. */
function paths(errors: unknown, of = ''): string[] {
  if (typeof errors !== 'object' || errors === null) return [];
  return Object.entries(errors).flatMap(([name, below]) =>
    name === '_errors' ? [of] : paths(below, of === '' ? name : `${of}.${name}`),
  );
}
