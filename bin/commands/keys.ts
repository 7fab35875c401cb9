import { readFileSync, writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import { exportSubjectKeys, importSubjectKeys, KeyExport, type Imported } from '../../engines/subject-keys/transfer';
import { runCommand, type Connect, type FullContext } from './context';

/** `lumio keys export|import`: the keys that make personal data readable, apart from every backup. Design §5. */
export function register(program: Command, connect: Connect<FullContext>): void {
  const group = program
    .command('keys')
    .description('subject keys: what makes personal data readable, kept apart from backups');
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
