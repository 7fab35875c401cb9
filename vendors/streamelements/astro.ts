import { z } from 'zod';
import { bodyOf } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpAnswer, HttpClients } from '../http/port';
import { kindOf, type StreamElementsApi } from './port';

export interface StreamElementsOptions {
  /** `https://api.streamelements.com`. */
  api_url: string;
  /** `wss://astro.streamelements.com`. */
  astro_url: string;
}

const Own = z.object({ _id: z.string().min(1).max(200) });
const Tips = z.object({ docs: z.array(z.looseObject({ _id: z.string() })) });

/** StreamElements' API and its gateway Astro, as far as tips go. Calls throw as `HttpClient.ask`. */
export function streamElementsApi(http: HttpClients, { api_url, astro_url }: StreamElementsOptions): StreamElementsApi {
  const over_http = astro_url.replace(/^ws/, 'http');
  const client = http.client('streamelements', [...new Set([api_url, over_http].map(hostOf))]);
  const read = <T>(answer: HttpAnswer, shape: z.ZodType<T>): T => bodyOf(answer, shape, api_url);
  const ask = (path: string, token: string) => {
    const scheme = kindOf(token) === 'jwt' ? 'Bearer' : 'apikey';
    const headers = { accept: 'application/json', authorization: `${scheme} ${token}` };
    return client.ask({ method: 'GET', url: `${api_url}/kappa/v2/${path}`, headers });
  };
  return {
    async channel(token) {
      return read(await ask('channels/me', token), Own)._id;
    },
    async tips(channel_id, token, { since, offset, limit }) {
      const [after, from, most] = [since, offset, limit].map(String) as [string, string, string];
      const asked = new URLSearchParams({ after, offset: from, limit: most, sort: '-createdAt' });
      return read(await ask(`tips/${encodeURIComponent(channel_id)}?${asked}`, token), Tips).docs;
    },
    socket(reconnect_token) {
      const url = new URL(astro_url);
      if (reconnect_token !== undefined) url.searchParams.set('reconnect_token', reconnect_token);
      return client.socket({ url });
    },
  };
}
