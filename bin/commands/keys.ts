import { readFileSync, writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { KeyUse } from '../../engines/secrets/rotation';
import { exportSubjectKeys, importSubjectKeys, KeyExport, type Imported } from '../../engines/subject-keys/transfer';
import { runCommand, type Connect, type FullContext } from './context';
import { progressBar } from './progress';

/**
 * `lumio keys export|import`: the keys that make personal data readable, apart from every backup. `lumio keys rotate|status`: the master keys
 * that all sealed secrets are under. Design §5.
 */
export function register(program: Command, connect: Connect<FullContext>): void {
  const group = program
    .command('keys')
    .description(
      'subject keys: what makes personal data readable, kept apart from backups; and the master keys that seal them',
    );
  group
    .command('export')
    .argument('<file>', 'a file that must not exist yet')
    .description(
      'write all subject keys to a file (mode 0600), each wrapped by a master key; keep it apart from backups, and not for long',
    )
    .action((file: string) =>
      runCommand(connect, async ({ db }) => {
        const exported = await exportSubjectKeys(db);
        writeFileSync(file, `${JSON.stringify(exported)}\n`, { mode: 0o600, flag: 'wx' });
        process.stdout.write(`${file}: ${exported.keys.length} keys, ${exported.erasures.length} erasures\n`);
      }),
    );
  group
    .command('import')
    .argument('<file>', 'what `lumio keys export` wrote')
    .description('bring subject keys back after a restore; a key that was ever erased stays destroyed')
    .action((file: string) =>
      runCommand(connect, async (context) => {
        const result = await importSubjectKeys(context, readKeyExport(file));
        process.stdout.write(
          `${shown(file, result)}; read models show what they open after: lumio rebuild event-log\n`,
        );
      }),
    );
  group
    .command('rotate')
    .description(
      'seal everything under the first key of secrets.keys that is under another one; beside a running Lumio, and again after it was cut off',
    )
    .addHelpText(
      'after',
      `
First give every process both keys, the new one behind the old one (secrets.keys: old,new), then the new one in front (new,old).
Then run this, and remove the old key everywhere when \`lumio keys status\` says that it may go.
Backups and key exports made before stay under the old key: keep it with them.`,
    )
    .action(() =>
      runCommand(connect, async ({ db, secrets }) => {
        const { keyUses, rotateKeys, SEALED_PLACES } = await sealing();
        const bar = progressBar('sealing {what} {bar} {percentage}% | {value}/{total} | {eta_formatted} left');
        try {
          const { rewrapped, unreadable } = await rotateKeys({
            db,
            secrets,
            places: SEALED_PLACES,
            onProgress: (done, total, what) => bar.update(done, total, what),
          });
          bar.stop();
          for (const { what, key, reason } of unreadable)
            process.stderr.write(`lumio: ${what}, ${key}: ${reason}; it stays as it is\n`);
          const { lines, only_first } = report(secrets.key_ids, await keyUses(db, SEALED_PLACES));
          process.stdout.write(`${rewrapped} sealed anew under ${secrets.key_ids[0]}\n${lines.join('\n')}\n`);
          return only_first ? 0 : 1;
        } finally {
          bar.stop();
        }
      }),
    );
  group
    .command('status')
    .description('what is sealed under which master key; ends with 1 when another one than the first is in use')
    .action(() =>
      runCommand(connect, async ({ db, secrets }) => {
        const { keyUses, SEALED_PLACES } = await sealing();
        const { lines, only_first } = report(secrets.key_ids, await keyUses(db, SEALED_PLACES));
        process.stdout.write(`${lines.join('\n')}\n`);
        return only_first ? 0 : 1;
      }),
    );
}

/** Loaded when it is used: help must not wait for what signs and seals. */
const sealing = async () => ({
  ...(await import('../../engines/secrets/rotation.js')),
  ...(await import('../sealed-places.js')),
});

/** What is sealed under which master key, and whether the first one is the only one in use. */
function report(key_ids: readonly string[], uses: readonly KeyUse[]): { lines: string[]; only_first: boolean } {
  const used = [...new Set(uses.map(({ key_id }) => key_id))];
  const unlisted = used.filter((id) => !key_ids.includes(id));
  const lines = [...key_ids, ...unlisted].map((id) => {
    const counts = uses.filter(({ key_id }) => key_id === id).map(({ what, count }) => `${count} ${what}`);
    const role = id === key_ids[0] ? ' (writes)' : unlisted.includes(id) ? ' (not in secrets.keys)' : '';
    const idle = role === '' ? 'nothing; it may be removed from secrets.keys' : 'nothing';
    return `${id}${role}: ${counts.length > 0 ? counts.join(', ') : idle}`;
  });
  return { lines, only_first: used.every((id) => id === key_ids[0]) };
}

/** @throws Error in one line when the file is no key export */
export function readKeyExport(file: string): KeyExport {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Error(`${file} cannot be read as a key export: ${(error as Error).message}`);
  }
  const parsed = KeyExport.safeParse(content);
  if (!parsed.success) throw new Error(`${file} is not a key export of a form that this program knows`);
  return parsed.data;
}

export const shown = (file: string, { imported, known, erased }: Imported): string =>
  `${file}: ${imported} keys imported, ${known} known already, ${erased} erased and left out`;
