import { z } from 'zod';
import { HOSTLESS_ORIGINS, plainOrigin } from '../../lib/net/origins';

const UNIT = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/**
 * Whole seconds, or a number with `ms`, `s`, `m`, `h`, `d`; read as milliseconds. Spec rulings, "durations in
 * settings".
 */
export const duration = (fallback: string) =>
  z
    .union([z.string(), z.number()])
    .default(fallback)
    .transform((value, ctx) => {
      const match = /^(\d+)(ms|s|m|h|d)?$/.exec(String(value));
      if (!match) {
        ctx.addIssue({ code: 'custom', message: 'must be whole seconds, or a number with ms, s, m, h or d' });
        return z.NEVER;
      }
      return Number(match[1]) * UNIT[(match[2] as keyof typeof UNIT | undefined) ?? 's'];
    });
export const flag = z.preprocess((value) => (value === 'true' ? true : value === 'false' ? false : value), z.boolean());
export const integer = (min: number, max: number) =>
  z.preprocess(
    (value) => (typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value),
    z.int().min(min).max(max),
  );
export const secret = z.string().default('');
export const listOf = (value: unknown) =>
  typeof value === 'string'
    ? value
        .split(',')
        .map((item) => item.trim())
        .filter(Boolean)
    : value;
export const strings = z.preprocess(listOf, z.array(z.string()));

/** Schemes whose pages, if there are any, have another `Origin` than scheme and host. */
const NEVER_ORIGINS = /^(?:wss?|ftp|file|blob|data|about|javascript):/;

/** `*`, or a value that browsers send as `Origin`, in its plain spelling. Refuses what no page can match. */
export const origins = z.preprocess(
  listOf,
  z.array(
    z.string().transform((text, ctx) => {
      if (text === '*' || HOSTLESS_ORIGINS.includes(text)) return text;
      const origin = plainOrigin(text);
      if (origin !== null && !NEVER_ORIGINS.test(origin)) return origin;
      ctx.addIssue({
        code: 'custom',
        message: 'must be *, null, file:// or an origin without a path, like https://app.example',
      });
      return z.NEVER;
    }),
  ),
);
export const httpUrl = z.url({ protocol: /^https?$/, error: 'must be an http or https URL' });

/** Where a vendor is called, without a slash at its end; another one than the vendor's own is for tests. */
export const baseUrl = (vendors_own: string) =>
  httpUrl.transform((url) => url.replace(/\/+$/, '')).default(vendors_own);

/** Address of a vendor's socket. */
export const socketUrl = (vendors_own: string) =>
  z.url({ protocol: /^wss?$/, error: 'must be a ws or wss URL' }).default(vendors_own);

/** An app at a vendor, with the meanings of its two settings. */
export const app = (meaning: { client_id: string; client_secret: string }) => ({
  client_id: strings.default([]).describe(meaning.client_id),
  client_secret: secret.describe(meaning.client_secret),
});

/** An app that users log in with, too. */
export const loginApp = (vendor: string) =>
  app({
    client_id:
      `Ids of the apps at ${vendor} that users log in with, separated by commas (web, phone); ` +
      'without one, these logins are off',
    client_secret: 'Secret of the first of these ids',
  });

/** A site's own address: scheme and host, a port where it is not the usual one. */
export const origin = httpUrl
  .refine(
    (url) => new URL(url).origin === url.replace(/\/$/, ''),
    'must be an address without a path, like https://app.example',
  )
  .transform((url) => new URL(url).origin);

/** Accepts an address of S3, or a folder. */
export function isBlobAddress(text: string): boolean {
  if (!text.startsWith('s3:')) return text !== '';
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  return [url.hostname, url.username, url.password, url.pathname.slice(1)].every((part) => part !== '');
}
