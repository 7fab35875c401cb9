/**
 * A shop's domain as it is stored and looked up: lower-case host without scheme, port, path or final dot; null when the
 * text names no host.
 */
export function readShopDomain(text: string): string | null {
  const host = text
    .trim()
    .toLowerCase()
    .replace(/^https?:\/\//, '')
    .replace(/[/:].*$/, '')
    .replace(/\.$/, '');
  return host.length <= 253 && /^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/.test(host) ? host : null;
}
