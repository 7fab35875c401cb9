import { createSecretBox } from '../../privacy/secrets/box';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { SecretUnreadable } from '../../privacy/secrets/port';

const key = (fill: number) => Buffer.alloc(32, fill).toString('base64');

describe('master keys', () => {
  test('the first one writes, all of them read', () => {
    const keys = parseMasterKeys(`new:${key(2)}, old:${key(1)}`);
    expect(keys.current.id).toBe('new');
    expect([...keys.by_id.keys()]).toEqual(['new', 'old']);
  });

  test.each([
    ['', 'entry 1 must be id:base64'],
    [key(1), 'entry 1 must be id:base64'],
    [`a:${Buffer.alloc(16).toString('base64')}`, 'entry 1 (id a) must hold base64 of exactly 32 bytes'],
    [`a:${key(1)},b:!!`, 'entry 2 (id b) must hold base64'],
    [`a:${key(1)},a:${key(2)}`, 'entry 2 repeats the id a'],
  ])('%j is refused in one line that shows no key', (text, message) => {
    expect(() => parseMasterKeys(text)).toThrow(message);
    expect(() => parseMasterKeys(text)).not.toThrow(key(1));
  });
});

describe('secret box', () => {
  const old = createSecretBox(parseMasterKeys(`old:${key(1)}`));
  const rotated = createSecretBox(parseMasterKeys(`new:${key(2)},old:${key(1)}`));

  test('what an older master key sealed opens after a rotation, and is known to be stale', () => {
    const sealed = old.seal('shh', 'oauth');
    expect(rotated.open(sealed, 'oauth').toString()).toBe('shh');
    expect(rotated.isStale(sealed)).toBe(true);
    expect(rotated.isStale(rotated.seal('shh', 'oauth'))).toBe(false);
  });

  test('a MAC names its master key, and is of that text and that context alone', () => {
    const mac = old.sign('text', 'manifest');
    rotated.verify(mac, 'text', 'manifest');
    for (const [text, context] of [
      ['texts', 'manifest'],
      ['text', 'other'],
    ]) {
      expect(() => rotated.verify(mac, text!, context!)).toThrow(SecretUnreadable);
    }
    expect(() => old.verify(rotated.sign('text', 'manifest'), 'text', 'manifest')).toThrow(/does not list/);
    for (const odd of ['', 'v1', 'v1.old', `${mac}.x`, mac.slice(0, -4), 'v1.old.']) {
      expect(() => rotated.verify(odd, 'text', 'manifest')).toThrow(SecretUnreadable);
    }
  });

  test('the same secret never looks the same twice', () => expect(old.seal('a', 'x')).not.toBe(old.seal('a', 'x')));

  test('another context, an unlisted key, a changed or cut text do not open', () => {
    const sealed = rotated.seal('shh', 'oauth');
    expect(() => rotated.open(sealed, 'signing')).toThrow('does not open for signing');
    expect(() => old.open(sealed, 'oauth')).toThrow('master key new, which secrets.keys does not list');
    expect(() => rotated.open(`${sealed.slice(0, -3)}AAA`, 'oauth')).toThrow('does not open');
    expect(() => rotated.open('v1.new.AAAA', 'oauth')).toThrow('cut off');
    expect(() => rotated.open('shh', 'oauth')).toThrow('not a sealed secret');
  });
});
