import { readFileSync } from 'node:fs';
import { assertOurs } from './disposable';

/** Pids of the direct children. */
export function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

/** A signal to a process that this run started; one that is gone already is no error. */
export function signal(pid: number, name: NodeJS.Signals): void {
  assertOurs(pid);
  send(pid, name);
}

/**
 * The process and its children, which may lead sessions of their own (PostgreSQL's backends call setsid, so a group
 * kill misses them).
 */
export function signalTree(pid: number, name: NodeJS.Signals): void {
  assertOurs(pid);
  for (const one of [pid, ...childrenOf(pid)]) send(one, name);
}

/** Resident memory in MiB; 0 when the process is gone. */
export function residentMiB(pid: number): number {
  try {
    const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return line ? Number(line[1]) / 1024 : 0;
  } catch (error) {
    if (isGone(error)) return 0;
    throw error;
  }
}

function send(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

const isGone = (error: unknown): boolean => ['ESRCH', 'ENOENT'].includes((error as NodeJS.ErrnoException).code ?? '');
