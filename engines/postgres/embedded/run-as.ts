import { spawnSync } from 'node:child_process';
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** Prefix and user for starting a program that refuses to run as root. */
export interface RunAs {
  /** Command before the program and its arguments. */
  prefix: string[];
  uid: number | undefined;
  gid: number | undefined;
}

/**
 * PostgreSQL refuses to run as root. As an ordinary user nothing changes; as root the program gets the uid of
 * `postgres` or `nobody`. Where that user may not enter a folder on the way (a checkout below `/root`, a `mktemp -d`),
 * the program keeps one capability, to pass folders, through `setpriv`.
 * @throws Error naming the folder when that is not possible
 */
export function runAs(paths: readonly string[]): RunAs {
  if (process.getuid?.() !== 0) return { prefix: [], uid: undefined, gid: undefined };
  const { uid, gid } = unprivilegedUser();
  const closed = paths.flatMap(foldersAbove).find((folder) => !mayEnter(folder, uid, gid));
  if (closed === undefined) return { prefix: [], uid, gid };
  const prefix = [
    'setpriv',
    `--reuid=${uid}`,
    `--regid=${gid}`,
    '--clear-groups',
    '--inh-caps=+dac_override',
    '--ambient-caps=+dac_override',
    // Without this flag access(2), which PostgreSQL calls before it runs a program, ignores the capability.
    '--securebits=+no_setuid_fixup',
  ];
  const works = spawnSync(prefix[0]!, [...prefix.slice(1), 'test', '-r', closed], { stdio: 'ignore' }).status === 0;
  if (!works) {
    throw new Error(
      `PostgreSQL cannot run as root, and uid ${uid} may not enter ${closed}: start as an ordinary user, or set LUMIO_DATA_DIR to a folder it may enter`,
    );
  }
  return { prefix, uid: undefined, gid: undefined };
}

/** uid and gid that files of the program must belong to, so that it can write them; undefined when not root. */
export function ownerFor(): { uid: number; gid: number } | undefined {
  return process.getuid?.() === 0 ? unprivilegedUser() : undefined;
}

function unprivilegedUser(): { uid: number; gid: number } {
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const user = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody');
  if (!user) throw new Error('PostgreSQL cannot run as root, and there is no user postgres or nobody to run it as');
  return { uid: Number(user[2]), gid: Number(user[3]) };
}

function foldersAbove(path: string): string[] {
  const folders: string[] = [];
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    folders.push(folder);
    if (folder === dirname(folder)) return folders;
  }
}

function mayEnter(folder: string, uid: number, gid: number): boolean {
  accessSync(folder, constants.F_OK);
  const { mode, uid: owner, gid: group } = statSync(folder);
  const bit = owner === uid ? 0o100 : group === gid ? 0o010 : 0o001;
  return (mode & bit) !== 0;
}
