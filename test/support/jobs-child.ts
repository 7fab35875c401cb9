import { jobNode, noting } from './jobs';

/**
 * A process of its own that runs the tests' jobs, to be killed by a test.
 * Usage: node jobs-child.js URL FILE [earnest], which is with the times of a real process
 */
async function main([url, outside, how]: string[]): Promise<void> {
  const times = how === 'earnest' ? { grace_ms: undefined, beat_ms: undefined, poll_ms: undefined } : {};
  await jobNode(url!, [noting('repeat'), noting('park')], { outside: outside! }, times);
  process.stdout.write('running\n');
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exit(1);
});
