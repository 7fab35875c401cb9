import { z } from 'zod';
import { OutcomeUnknown } from '../../kernel/job';
import { bodyAs } from '../http/body';
import type { HttpClient, HttpRequest } from '../http/port';
import { chatCall } from '../chat/calls';
import type { ChannelTools, ChatLogin } from '../chat/port';

const Made = z.object({ data: z.array(z.object({ id: z.string() })).min(1) });

/** Helix calls for raids, polls, predictions and suspicious users. Source: Twitch API reference. */
export function twitchTools(client: HttpClient, api_url: string): ChannelTools {
  const call = (
    { token, client_id }: ChatLogin,
    method: HttpRequest['method'],
    path: string,
    { query = {}, json }: { query?: Readonly<Record<string, string>>; json?: object },
  ) => {
    const search = new URLSearchParams(query).toString();
    return chatCall(client, {
      method,
      url: `${api_url}/helix/${path}${search && `?${search}`}`,
      headers: { authorization: `Bearer ${token}`, 'client-id': client_id },
      ...(json && { json }),
    });
  };
  const titled = (texts: readonly string[]) => texts.map((title) => ({ title }));

  async function make(by: ChatLogin, path: string, json: object): Promise<string> {
    const made = bodyAs(await call(by, 'POST', path, { json: { broadcaster_id: by.user_id, ...json } }), Made);
    if (made === undefined) throw new OutcomeUnknown(`Twitch named no id of what it made at ${path}`);
    return made.data[0]!.id;
  }

  return {
    async raid(by, to_broadcaster_id) {
      await call(by, 'POST', 'raids', { query: { from_broadcaster_id: by.user_id, to_broadcaster_id } });
    },
    async cancelRaid(by) {
      await call(by, 'DELETE', 'raids', { query: { broadcaster_id: by.user_id } });
    },
    poll: (by, { title, choices, duration_secs: duration }) =>
      make(by, 'polls', { title, choices: titled(choices), duration }),
    prediction: (by, { title, outcomes, window_secs: prediction_window }) =>
      make(by, 'predictions', { title, outcomes: titled(outcomes), prediction_window }),
    async end(by, id, { tool, ...end }) {
      await call(by, 'PATCH', `${tool}s`, { json: { broadcaster_id: by.user_id, id, ...end } });
    },
    async treat(by, user_id, treatment) {
      const query = { broadcaster_id: by.user_id, moderator_id: by.user_id };
      const path = 'moderation/suspicious_users';
      if (treatment === 'none') await call(by, 'DELETE', path, { query: { ...query, user_id } });
      else await call(by, 'POST', path, { query, json: { user_id, status: treatment.toUpperCase() } });
    },
  };
}
