import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface PrivateAuthority {
  /** Its own certificate: PEM, and the file that holds it. */
  ca: string;
  ca_file: string;
  /** Key and certificate of a server on 127.0.0.1, in one PEM file. */
  server_file: string;
}

/** A certificate authority that nobody else trusts, with one server certificate; valid for two days. */
export function privateAuthority(): PrivateAuthority {
  const folder = mkdtempSync(join(tmpdir(), 'lumio-authority-'));
  const at = (name: string) => join(folder, name);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(
    ...['req', '-x509', ...key, '-days', '2', '-subj', '/CN=Lumio test authority'],
    ...['-keyout', at('ca.key'), '-out', at('ca.pem')],
  );
  openssl('req', ...key, '-subj', '/CN=127.0.0.1', '-keyout', at('server.key'), '-out', at('server.csr'));
  writeFileSync(at('extensions'), 'subjectAltName=IP:127.0.0.1,DNS:localhost\n');
  openssl(
    ...['x509', '-req', '-in', at('server.csr'), '-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial'],
    ...['-days', '2', '-extfile', at('extensions'), '-out', at('server.crt')],
  );
  const chain = ['server.key', 'server.crt', 'ca.pem'].map((name) => readFileSync(at(name), 'utf8'));
  writeFileSync(at('server.pem'), chain.join(''), { mode: 0o600 });
  return { ca: readFileSync(at('ca.pem'), 'utf8'), ca_file: at('ca.pem'), server_file: at('server.pem') };
}
