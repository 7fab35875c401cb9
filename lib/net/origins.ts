/** Values of `Origin` without a host: pages in sandboxed frames, and local files. */
export const HOSTLESS_ORIGINS: readonly string[] = ['null', 'file://'];

const WITH_HOST = /^([a-z][a-z0-9+.-]*):\/\/([^\s/?#@\\*]+)$/i;

/**
 * The one spelling of an origin with a host: scheme and host in lower case, no default port (RFC 6454 §4). Null for
 * other texts, those of {@link HOSTLESS_ORIGINS} included.
 */
export function plainOrigin(text: string): string | null {
  if (!WITH_HOST.test(text) || !URL.canParse(text)) return null;
  const { protocol, host } = new URL(text);
  return host === '' ? null : `${protocol}//${host.toLowerCase()}`;
}

export interface OriginSettings {
  /** Plain origins, {@link HOSTLESS_ORIGINS}, or `*` for all. */
  allowed_origins: readonly string[];
  public_url?: string | undefined;
}

/** Decides, for REST and for upgrades, what a page may do by its `Origin`. Only browsers send this header. */
export class OriginPolicy {
  /** Whether pages of every origin may call the API without cookies. */
  readonly any: boolean;
  private readonly listed: ReadonlySet<string>;
  private readonly hostless: ReadonlySet<string>;

  constructor({ allowed_origins, public_url }: OriginSettings) {
    this.any = allowed_origins.includes('*');
    this.hostless = new Set(allowed_origins.filter((origin) => HOSTLESS_ORIGINS.includes(origin)));
    const plain = [...allowed_origins, ...(public_url === undefined ? [] : [new URL(public_url).origin])];
    this.listed = new Set(plain.map(plainOrigin).filter((origin) => origin !== null));
  }

  /** Whether a setting names the origin. */
  isListed(origin: string | undefined): boolean {
    const plain = origin === undefined ? null : plainOrigin(origin);
    return plain !== null && this.listed.has(plain);
  }

  /**
   * Whether a page may act with its visitor's cookies: its origin is listed, or the host of the request.
   * @param host `Host` of the request; without a port it has the default port of the origin's scheme
   */
  allowsCookies(origin: string | undefined, host: string | undefined): boolean {
    const plain = origin === undefined ? null : plainOrigin(origin);
    if (plain === null) return false;
    return this.listed.has(plain) || plain === plainOrigin(`${plain.slice(0, plain.indexOf(':'))}://${host ?? ''}`);
  }

  /** Whether a page may open a socket; a listed origin without a host needs a token in the query. */
  allowsSocket(origin: string | undefined, host: string | undefined, has_query_token: boolean): boolean {
    if (origin === undefined || this.any || this.allowsCookies(origin, host)) return true;
    return has_query_token && this.hostless.has(origin);
  }
}
