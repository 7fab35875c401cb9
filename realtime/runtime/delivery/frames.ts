/** Server-to-client WebSocket frames (RFC 6455 §5.2): final, unmasked, uncompressed. */
const TEXT = 0x81;
const PONG = 0x8a;

function frame(opcode: number, length: number): { bytes: Buffer; start: number } {
  const start = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const bytes = Buffer.allocUnsafeSlow(start + length);
  bytes[0] = opcode;
  if (start === 2) {
    bytes[1] = length;
  } else if (start === 4) {
    bytes[1] = 126;
    bytes.writeUInt16BE(length, 2);
  } else {
    bytes[1] = 127;
    bytes.writeUInt32BE(Math.floor(length / 2 ** 32), 2);
    bytes.writeUInt32BE(length % 2 ** 32, 6);
  }
  return { bytes, start };
}

/** A text message as bytes on the wire. Framed once, written to every subscriber. */
export function textFrame(text: string): Buffer {
  const { bytes, start } = frame(TEXT, Buffer.byteLength(text));
  bytes.write(text, start, 'utf8');
  return bytes;
}

/** The answer to a client's Ping control frame; `data` is at most 125 bytes by the protocol. */
export function pongFrame(data: Buffer): Buffer {
  const { bytes, start } = frame(PONG, data.length);
  data.copy(bytes, start);
  return bytes;
}
