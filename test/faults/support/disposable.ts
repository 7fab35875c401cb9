/** Processes that helpers may hurt: those that were started here. A pid that is not among them is refused. */
const ours = new Set<number>();

export const own = (pid: number): void => void ours.add(pid);
export const disown = (pid: number): void => void ours.delete(pid);

/** @throws Error unless this run started the process */
export function assertOurs(pid: number): void {
  if (!ours.has(pid)) throw new Error(`refusing to touch process ${pid}: this run did not start it`);
}

/**
 * Called by every helper that cuts, drops or fills a database.
 * @throws Error unless the database's name holds the word "test" and its host is this machine
 */
export function assertDisposable(url: string): void {
  const { pathname, hostname } = new URL(url);
  const name = pathname.slice(1);
  if (!/(^|_)test(_|$)/.test(name)) {
    throw new Error(`refusing to break "${name}": a disposable database has "test" in its name`);
  }
  if (hostname !== '' && hostname !== 'localhost' && !/^127\./.test(hostname)) {
    throw new Error(`refusing to break a database on ${hostname}: a disposable one runs on this machine`);
  }
}
