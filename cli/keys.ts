import { open, rm } from 'node:fs/promises';
import type { Command } from 'commander';
import type { Database } from '../engines/postgres/port';
import type { KeyUse } from '../privacy/secrets/rotation';
import { type KeyCounts, readLines } from '../privacy/subject-keys/export-lines';
import { exportSubjectKeys, importSubjectKeys, type Imported } from '../privacy/subject-keys/transfer';
import { runCommand, type Connect, type FullContext } from './runtime/context';
import { progressBar } from './runtime/progress';

/**
 * `lumio keys export|import`: the keys of personal data, separate from every backup.
 * `lumio keys rotate|status`: the master keys of all sealed secrets. `lumio keys rotate-signing`: the key that signs
 * tokens. Design §5.
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
        const { keys, erasures } = await writeKeyExport(db, file);
        process.stdout.write(`${file}: ${keys} keys, ${erasures} erasures\n`);
      }),
    );
  group
    .command('import')
    .argument('<file>', 'what `lumio keys export` wrote')
    .description('bring subject keys back after a restore; a key that was ever erased stays destroyed')
    .action((file: string) =>
      runCommand(connect, async (context) => {
        await checkKeyExport(file);
        const result = await importSubjectKeys(context, keyLines(file));
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
        const { keyUses, rotateKeys, ENCRYPTED_COLUMNS: SEALED_PLACES } = await sealing();
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
    .command('rotate-signing')
    .description(
      'make a new key that signs tokens a minute from now, on every node and without a restart; what was signed before stays right until it ends',
    )
    .option(
      '--compromised',
      'somebody else may have the keys: the new one signs at once, and whatever the others signed is refused; everybody logs in again',
    )
    .action(({ compromised }: { compromised?: boolean }) =>
      runCommand(connect, async (context) => {
        const { createAdminContext, replaceSigning, rotateSigning } = await import('./admin/index.js');
        const services = await createAdminContext(context);
        if (compromised) {
          const { kid } = await replaceSigning(services);
          process.stdout.write(`${kid} signs from now on; keys before it verify nothing\n`);
          return;
        }
        const { access_token_expiration, session_lifetime, ws_token_expiration } = context.settings.auth;
        const longest = Math.max(access_token_expiration, session_lifetime, ws_token_expiration);
        const { kid, signs_from, others_verify_until } = await rotateSigning(services, longest);
        process.stdout.write(`${kid} signs from ${signs_from}; keys before it verify until ${others_verify_until}\n`);
      }),
    );
  group
    .command('status')
    .description('what is sealed under which master key; ends with 1 when another one than the first is in use')
    .action(() =>
      runCommand(connect, async ({ db, secrets }) => {
        const { keyUses, ENCRYPTED_COLUMNS: SEALED_PLACES } = await sealing();
        const { lines, only_first } = report(secrets.key_ids, await keyUses(db, SEALED_PLACES));
        process.stdout.write(`${lines.join('\n')}\n`);
        return only_first ? 0 : 1;
      }),
    );
}

/** Loaded on use, because the modules for signing and sealing would delay help. */
const sealing = async () => ({
  ...(await import('../privacy/secrets/rotation.js')),
  ...(await import('./runtime/encrypted-columns.js')),
});

/** Uses of each master key, and whether only the first is in use. */
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

/** Writes a complete file or none. */
async function writeKeyExport(db: Database, file: string): Promise<KeyCounts> {
  const handle = await open(file, 'wx', 0o600);
  try {
    const counts = await exportSubjectKeys(db, async (line) => void (await handle.appendFile(line)));
    await handle.sync();
    await handle.close();
    return counts;
  } catch (error) {
    await handle.close();
    await rm(file);
    throw error;
  }
}

/** Lines of a key export, read lazily. */
export async function* keyLines(file: string): AsyncGenerator<string> {
  const handle = await open(file);
  try {
    yield* handle.readLines();
  } finally {
    await handle.close();
  }
}

/**
 * Validates an entire key export, so that a damaged one is refused before the first change. @throws Error with a
 * one-line message
 */
export async function checkKeyExport(file: string): Promise<void> {
  try {
    for await (const _line of readLines(keyLines(file)));
  } catch (error) {
    inFile(file)(error as Error);
  }
}

const inFile = (file: string) => (error: Error) => {
  throw new Error(`${file} cannot be read as a key export: ${error.message}`, { cause: error });
};

export const shown = (file: string, { imported, known, erased }: Imported): string =>
  `${file}: ${imported} keys imported, ${known} known already, ${erased} erased and left out`;
