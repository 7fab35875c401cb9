import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { engineFolder } from './process';

export interface PrivateAuthority {
  /** Its own certificate: PEM, and the file that holds it. */
  ca: string;
  ca_file: string;
  /** Key and certificate of a server on 127.0.0.1, in one PEM file. */
  server_file: string;
  /** Paths of a client's certificate and key. */
  client(name: string): { cert_file: string; key_file: string };
}

/**
 * A certificate authority that nobody else trusts, with one server certificate and clients' as asked for; valid for two
 * days.
 */
export function privateAuthority(): PrivateAuthority {
  const folder = engineFolder('authority');
  const at = (name: string) => join(folder, name);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(
    ...['req', '-x509', ...key, '-days', '2', '-subj', '/CN=Lumio test authority'],
    ...['-keyout', at('ca.key'), '-out', at('ca.pem')],
  );
  /** `<name>.key` and `<name>.crt`. */
  const sign = (name: string, subject: string, extension: string) => {
    openssl('req', ...key, '-subj', subject, '-keyout', at(`${name}.key`), '-out', at(`${name}.csr`));
    writeFileSync(at(`${name}.extensions`), `${extension}\n`);
    openssl(
      ...['x509', '-req', '-in', at(`${name}.csr`), '-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial'],
      ...['-days', '2', '-extfile', at(`${name}.extensions`), '-out', at(`${name}.crt`)],
    );
  };
  sign('server', '/CN=127.0.0.1', 'subjectAltName=IP:127.0.0.1,DNS:localhost');
  const chain = ['server.key', 'server.crt', 'ca.pem'].map((name) => readFileSync(at(name), 'utf8'));
  writeFileSync(at('server.pem'), chain.join(''), { mode: 0o600 });
  return {
    ca: readFileSync(at('ca.pem'), 'utf8'),
    ca_file: at('ca.pem'),
    server_file: at('server.pem'),
    client(name) {
      sign(name, `/CN=${name}`, 'extendedKeyUsage=clientAuth');
      return { cert_file: at(`${name}.crt`), key_file: at(`${name}.key`) };
    },
  };
}
