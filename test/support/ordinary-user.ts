import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';

export interface OrdinaryUser {
  /** Not 0. */
  uid: number;
  /** What a process is started as; undefined when the test itself runs as an ordinary user. */
  user: { uid: number; gid: number } | undefined;
  /** The node and the checkout's root that this user may read. */
  node: string;
  root: string;
  dispose(): void;
}

/**
 * A user without rights of its own to run the compiled program as: the test's own, or `nobody` when the test runs as
 * root. Where `nobody` may not enter the checkout, or reach node, it gets a copy.
 */
export function ordinaryUser(root: string): OrdinaryUser {
  const own = process.getuid!();
  if (own !== 0) return { uid: own, user: undefined, node: process.execPath, root, dispose: () => undefined };
  const user = nobody();
  const closed = !isOpen(root);
  if (!closed && isOpen(dirname(process.execPath)))
    return { uid: user.uid, user, node: process.execPath, root, dispose: () => undefined };
  const copy = mkdtempSync(join(tmpdir(), 'lumio-ordinary-'));
  chmodSync(copy, 0o755);
  for (const name of closed ? ['package.json', 'dist', 'node_modules'] : [])
    cpSync(join(root, name), join(copy, name), { recursive: true, verbatimSymlinks: true });
  const node = join(copy, basename(process.execPath));
  cpSync(process.execPath, node);
  return {
    uid: user.uid,
    user,
    node,
    root: closed ? copy : root,
    dispose: () => rmSync(copy, { recursive: true, force: true }),
  };
}

function nobody(): { uid: number; gid: number } {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith('nobody:'))!;
  const [, , uid, gid] = line.split(':');
  return { uid: Number(uid), gid: Number(gid) };
}

function isOpen(folder: string): boolean {
  if ((statSync(folder).mode & 0o001) === 0) return false;
  return folder === dirname(folder) || isOpen(dirname(folder));
}
