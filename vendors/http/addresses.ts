import { lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isPublic } from '../../lib/net/public-addresses';

/** A name that leads to an address which must not be called. */
export class PrivateAddress extends Error {
  readonly code = 'LUMIO_PRIVATE_ADDRESS';
  constructor(host: string) {
    super(`${host} leads to an address that is not public`);
    this.name = 'PrivateAddress';
  }
}

/**
 * Name resolution for connections: the addresses that were checked are the ones that are connected to. One private
 * address among several refuses the name.
 */
export function guardedLookup(allow_loopback: boolean, resolve: typeof systemLookup = systemLookup): LookupFunction {
  return (host, options, callback) => {
    resolve(host, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '', 0);
      const bad = found.length === 0 || found.some(({ address }) => !isPublic(address, allow_loopback));
      if (bad) return callback(new PrivateAddress(host) as NodeJS.ErrnoException, '', 0);
      if (options.all) return callback(null, found);
      return callback(null, found[0]!.address, found[0]!.family);
    });
  };
}
