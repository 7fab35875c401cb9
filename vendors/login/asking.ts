import type { z } from 'zod';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import type { HttpAnswer, HttpClient, HttpClients, HttpRequest } from '../http/port';
import { bodyAs } from '../http/body';
import { hostOf } from '../http/hosts';
import { ProviderUnavailable, TokenRefused } from './port';

/** Somebody waits for their login. */
const DEADLINE_MS = 4_000;

export interface Asking {
  /** The answer's body, where it is of this shape. */
  ask<T>(request: Pick<HttpRequest, 'method' | 'headers' | 'body'> & { url: string }, shape: z.ZodType<T>): Promise<T>;
  /** As {@link Asking.ask}; null where the token may not ask this, though it is right. */
  askIfAllowed<T>(request: Parameters<Asking['ask']>[0], shape: z.ZodType<T>): Promise<T | null>;
}

/** How one provider is asked; every failure is one of the two that logins know. */
export function asking(http: HttpClients, provider: string, bases: readonly string[]): Asking {
  const hosts = [...new Set(bases.map(hostOf))];
  const client: HttpClient = http.client(provider, hosts);

  async function answer(request: Parameters<Asking['ask']>[0]): Promise<HttpAnswer> {
    try {
      // None of these calls changes anything there.
      return await client.call({ ...request, repeatable: true, deadline_ms: DEADLINE_MS });
    } catch (error) {
      if (error instanceof NotSent || error instanceof OutcomeUnknown) {
        throw new ProviderUnavailable(provider, undefined, { cause: error });
      }
      throw error;
    }
  }

  function read<T>(said: HttpAnswer, shape: z.ZodType<T>): T {
    const data = bodyAs(said, shape);
    if (data === undefined) throw new ProviderUnavailable(provider);
    return data;
  }

  return {
    async ask(request, shape) {
      const said = await answer(request);
      if (said.status === 200) return read(said, shape);
      if (said.status === 400 || said.status === 401) throw new TokenRefused();
      throw new ProviderUnavailable(provider, said.retry_after_ms);
    },
    async askIfAllowed(request, shape) {
      const said = await answer(request);
      if (said.status === 200) return read(said, shape);
      if (said.status >= 400 && said.status < 429) return null;
      throw new ProviderUnavailable(provider, said.retry_after_ms);
    },
  };
}

/** Of a text that is empty nothing is known. */
export const textOf = (text: string | null | undefined): string | null => (text ? text : null);

/** An instant in Unix seconds. */
export const secondsOf = (at: string | number | null | undefined): number | null => {
  const ms = at === null || at === undefined ? Number.NaN : Number(at) * 1000;
  return Math.abs(ms) <= LAST_MS ? ms : null;
};
/** The last moment that a Date can be. */
const LAST_MS = 8.64e15;

/** Scopes that stand in one text, with spaces between them. */
export const scopesOf = (text: string | undefined): string[] => text?.split(' ').filter(Boolean) ?? [];
