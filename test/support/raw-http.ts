import { connect } from 'node:net';

/**
 * Sends bytes as they are, and resolves with all that came back when the server has closed. @throws Error when it does
 * not close
 */
export function rawHttp(origin: string, text: string | Buffer): Promise<string> {
  const { port, hostname } = new URL(origin);
  return new Promise((done, fail) => {
    let answer = '';
    const socket = connect(Number(port), hostname, () => socket.write(text));
    const late = setTimeout(() => socket.destroy(new Error(`the server did not close after: ${answer}`)), 30_000);
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
    socket.once('error', (error) => (answer === '' || !late.hasRef() ? fail(error) : undefined));
    socket.once('close', () => {
      clearTimeout(late);
      done(answer);
    });
  });
}

/** Status, headers by lower-case name, and body of the first answer in `text`. */
export function parseAnswer(text: string): { status: number; headers: Record<string, string>; body: string } {
  const end = text.indexOf('\r\n\r\n');
  const [first = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  return { status: Number(first.split(' ')[1]), headers, body: text.slice(end + 4) };
}
