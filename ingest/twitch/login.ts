import { pause } from '../../lib/async/signal';
import type { Twitch, TwitchLogin } from '../../vendors/twitch/port';
import { ConnectionRefused, type Link } from '../runtime/connection/adapter';

/** Twitch requires a validation once an hour. */
const VALIDATE_MS = 60 * 60_000;

/** The token of a connection with its app; `user_id` where Twitch had to be asked for them. */
export async function loginOf(
  link: Pick<Link, 'token' | 'connection'>,
  twitch: Pick<Twitch, 'validate'>,
  default_client_id: string | undefined,
  refused?: string,
): Promise<{ login: TwitchLogin; user_id?: string }> {
  const token = await link.token(refused);
  const client_id = link.connection.client_id ?? default_client_id;
  if (client_id !== undefined) return { login: { token, client_id } };
  const validated = await twitch.validate(token);
  if (validated === null) throw new ConnectionRefused('token_refused');
  return { login: { token, client_id: validated.client_id }, user_id: validated.user_id };
}

/** Validates the token once an hour until the signal; resolves earlier, with the reason, when no token is accepted. */
export async function validateHourly(
  link: Pick<Link, 'token'>,
  twitch: Pick<Twitch, 'validate'>,
  signal: AbortSignal,
): Promise<ConnectionRefused | null> {
  for (;;) {
    await pause(VALIDATE_MS * (0.9 + Math.random() / 10), signal);
    if (signal.aborted) return null;
    try {
      const token = await link.token();
      if ((await twitch.validate(token)) === null) await link.token(token);
    } catch (error) {
      if (error instanceof ConnectionRefused) return error;
    }
  }
}
