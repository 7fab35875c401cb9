import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { SASLOptions } from 'kafkajs';
import type { Settings } from '../../../kernel/settings/settings';
import type { KafkaConnection } from './client';
import { environmentName, SettingsError } from '../../../kernel/settings/error';

type BrokerSettings = Settings['broker'];
type Pem = 'tls_ca' | 'tls_cert' | 'tls_key';

/** Settings to check first, by the refused part. */
export const REFUSED_BY = {
  login: 'LUMIO_BROKER__SASL_USERNAME, LUMIO_BROKER__SASL_PASSWORD',
  certificate: 'LUMIO_BROKER__TLS_CA',
  'client certificate': 'LUMIO_BROKER__TLS_CERT, LUMIO_BROKER__TLS_KEY',
} as const;

/** TLS and login for the brokers, from the settings. @throws SettingsError naming the key */
export function kafkaConnection(settings: BrokerSettings): Pick<KafkaConnection, 'tls' | 'sasl'> {
  const { tls, sasl_mechanism, sasl_username, sasl_password } = settings;
  if (sasl_mechanism !== undefined && (sasl_username === undefined || sasl_password === undefined)) {
    throw new SettingsError(
      'LUMIO_BROKER__SASL_USERNAME and LUMIO_BROKER__SASL_PASSWORD: must be set with LUMIO_BROKER__SASL_MECHANISM',
    );
  }
  for (const name of ['tls_ca', 'tls_cert', 'tls_key'] as const) {
    if (settings[name] !== undefined && !tls)
      throw new SettingsError(`${key(name)}: has no meaning without LUMIO_BROKER__TLS=true`);
  }
  if ((settings.tls_cert === undefined) !== (settings.tls_key === undefined)) {
    throw new SettingsError('LUMIO_BROKER__TLS_CERT and LUMIO_BROKER__TLS_KEY: must be set together');
  }
  const ca = pem(settings, 'tls_ca');
  const cert = pem(settings, 'tls_cert');
  const own = cert !== undefined ? { cert, key: keyOf(cert, pem(settings, 'tls_key')!) } : undefined;
  return {
    tls: tls && (ca !== undefined || own) ? { ...(ca !== undefined && { ca }), ...own } : tls,
    ...(sasl_mechanism && {
      sasl: { mechanism: sasl_mechanism, username: sasl_username!, password: sasl_password! } as SASLOptions,
    }),
  };
}

const key = (name: Pem) => `${environmentName(['broker', name])} (broker.${name})`;

/** PEM text of a setting that holds the text itself or the path of its file. */
function pem(settings: BrokerSettings, name: Pem): string | undefined {
  const pem = settings[name];
  if (pem === undefined) return undefined;
  const [what, begin] =
    name === 'tls_key'
      ? (['private key', /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----/] as const)
      : (['certificate', /-----BEGIN CERTIFICATE-----/] as const);
  if (begin.test(pem)) return pem;
  let text: string;
  try {
    text = readFileSync(pem, 'utf8');
  } catch (error) {
    const { code = 'unreadable' } = error as NodeJS.ErrnoException;
    throw new SettingsError(`${key(name)}: must be PEM or the path of a PEM file (${code}: ${shown(pem)})`);
  }
  if (!begin.test(text)) throw new SettingsError(`${key(name)}: ${pem} holds no PEM ${what}`);
  return text;
}

/** Shows only a text with the form of a path, because any other text that is not PEM may still be a secret. */
const shown = (pem: string) => (/^[\w./~-]{1,200}$/.test(pem) ? pem : 'not a path');

/** Returns the private key. @throws SettingsError when the key does not belong to the certificate */
function keyOf(cert: string, private_key: string): string {
  let fits: boolean;
  try {
    fits = new X509Certificate(cert).checkPrivateKey(createPrivateKey(private_key));
  } catch (error) {
    throw new SettingsError(
      `LUMIO_BROKER__TLS_CERT and LUMIO_BROKER__TLS_KEY: cannot be read (${(error as NodeJS.ErrnoException).code ?? 'malformed'}); a key with a passphrase is not supported`,
    );
  }
  if (!fits) throw new SettingsError(`${key('tls_key')}: is not the key of LUMIO_BROKER__TLS_CERT`);
  return private_key;
}
