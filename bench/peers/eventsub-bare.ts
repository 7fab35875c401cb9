import { WebSocket } from 'ws';

/** COUNT sockets that only parse their frames: `eventsub-bare.js ADDRESS COUNT`. */
async function main([address = '', count = '1']: string[]): Promise<void> {
  let parsed = 0;
  const open = () =>
    new Promise<void>((welcome, failed) => {
      const ws = new WebSocket(`ws://${address}/ws`, { perMessageDeflate: false });
      ws.on('error', failed);
      ws.on('message', (data: Buffer) => {
        const { metadata } = JSON.parse(data.toString()) as { metadata: { message_type: string } };
        if (metadata.message_type === 'session_welcome') welcome();
        else parsed += 1;
      });
    });
  for (let left = Number(count); left > 0; left -= 50) {
    await Promise.all(Array.from({ length: Math.min(left, 50) }, open));
  }
  process.stdout.write('bare sockets ready at http://127.0.0.1:0\n');
  process.once('SIGTERM', () => process.exit(parsed > 0 ? 0 : 1));
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
