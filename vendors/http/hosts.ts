/** Host and port of an address, as a client's list of hosts names them. */
export function hostOf(base: string): string {
  const { hostname, port, protocol } = new URL(base);
  return `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`;
}
