import { spawn } from 'node:child_process';
import { createServer, type AddressInfo } from 'node:net';
import { write, writeAll } from '../../realtime/runtime/delivery/socket-write';

/** Reads as fast as it can, in a process of its own. */
const READER = 'require("net").connect(Number(process.argv[1]), "127.0.0.1").on("data", () => undefined)';
const BYTES = Buffer.alloc(300_000);
const ROUNDS = 500;

/**
 * Fills a socket while another process empties it, so that now and then the kernel takes at a second try what it had
 * no room for at the first. Prints how many writes there were, and how many had to wait.
 */
const server = createServer((socket) => {
  let waited = 0;
  let rounds = 0;
  // The first write shows the classes that the others use.
  write(socket, Buffer.from('x'));
  const round = (): void => {
    if ((rounds += 1) > ROUNDS) {
      console.log(JSON.stringify({ rounds: ROUNDS, waited }));
      process.exit();
    }
    for (let n = 0; n < 50; n += 1) {
      if (n % 2 === 0 ? write(socket, BYTES) : writeAll(socket, [BYTES, BYTES])) continue;
      waited += 1;
      break;
    }
    socket.write(Buffer.alloc(0), () => setImmediate(round));
  };
  setImmediate(round);
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  const reader = spawn(process.execPath, ['-e', READER, String(port)], { stdio: 'inherit' });
  process.once('exit', () => reader.kill());
});
