import type { FastifyReply, FastifyRequest } from 'fastify';
import { Readable } from 'node:stream';
import type { z } from 'zod';
import { ApiError } from '../../kernel/errors';
import type { Attachment, ByteRange, Chunks, Download, Sends } from '../../kernel/operations/transfers';
import { csvLine } from '../../lib/text/csv';
import { compileSerialiser } from './serialise';

/** Sends an operation's result that is not a JSON document. */
export type Sender = (request: FastifyRequest, reply: FastifyReply, result: unknown) => Promise<FastifyReply>;

/** @param output of an NDJSON operation: the schema of one line */
export function senderOf(sends: Sends, output: z.ZodType): Sender {
  switch (sends.kind) {
    case 'download':
      return (request, reply, result) => sendDownload(request, reply, result as Download);
    case 'attachment':
      return (request, reply, result) => sendAttachment(request, reply, result as Attachment);
    case 'ndjson': {
      const write = compileSerialiser(output, { schema: (one) => one });
      const lines: LineFormat = { type: NDJSON, head: '', write: (item) => `${write(item)}\n` };
      const csv = sends.csv ? csvOf(output) : lines;
      return (request, reply, result) =>
        sendLines(request, reply, result as AsyncIterable<unknown>, acceptsCsv(request) ? csv : lines);
    }
  }
}

async function sendDownload(request: FastifyRequest, reply: FastifyReply, sent: Download): Promise<FastifyReply> {
  const etag = `"${sent.etag}"`;
  void reply.headers({ etag, 'accept-ranges': 'bytes' });
  if (sent.content_security_policy !== undefined) {
    const policy = { 'content-security-policy': sent.content_security_policy, 'content-disposition': 'inline' };
    void reply.headers({ ...policy, 'x-content-type-options': 'nosniff' });
  }
  if (sent.cache_control !== undefined) void reply.header('cache-control', sent.cache_control);
  if (matches(request.headers['if-none-match'], etag)) return reply.code(304).send();
  const if_range = request.headers['if-range'];
  const asked = if_range === undefined || if_range === etag ? request.headers.range : undefined;
  const range = rangeOf(asked, sent.size_bytes);
  if (range === 'unsatisfiable') {
    void reply.header('content-range', `bytes */${sent.size_bytes}`);
    throw new ApiError('BAD_REQUEST', 'The range lies outside of the content', { status: 416 });
  }
  const part = range ?? { start: 0, end: sent.size_bytes - 1 };
  void reply.headers({ 'content-type': sent.content_type, 'content-length': part.end - part.start + 1 });
  if (range) void reply.code(206).header('content-range', `bytes ${part.start}-${part.end}/${sent.size_bytes}`);
  if (request.method === 'HEAD' || sent.size_bytes === 0) return reply.send(Readable.from([]));
  return reply.send(streamed(await sent.open(part)));
}

async function sendAttachment(request: FastifyRequest, reply: FastifyReply, sent: Attachment): Promise<FastifyReply> {
  const { content } = sent;
  void reply.headers({
    'content-type': sent.content_type,
    'content-disposition': disposition(sent.filename),
  });
  if (typeof content !== 'string' && !(content instanceof Uint8Array)) {
    return reply.send(request.method === 'HEAD' ? ended(content) : streamed(content));
  }
  return reply.send(Buffer.from(content as Uint8Array));
}

/** How items are written, one after the other. */
interface LineFormat {
  type: string;
  head: string;
  write(item: unknown): string;
}

function csvOf(output: z.ZodType): LineFormat {
  const columns = Object.keys((output as z.ZodObject).shape);
  const write = (item: unknown) => csvLine(columns.map((column) => (item as Record<string, unknown>)[column]));
  return { type: 'text/csv; charset=utf-8', head: csvLine(columns), write };
}

const acceptsCsv = ({ headers }: FastifyRequest): boolean =>
  (headers.accept ?? '').split(',').some((one) => /^\s*text\/csv\s*(;|$)/i.test(one));

/** Sends items line by line. A failure before the first line is an ordinary error; a later one ends the connection. */
async function sendLines(
  request: FastifyRequest,
  reply: FastifyReply,
  items: AsyncIterable<unknown>,
  { type, head, write }: LineFormat,
): Promise<FastifyReply> {
  const iterator = items[Symbol.asyncIterator]();
  const first = request.method === 'HEAD' ? null : await iterator.next();
  // No reader: a HEAD request, or the caller left while the first line was read.
  if (first === null || reply.raw.closed) {
    await iterator.return?.();
    return reply.header('content-type', type).send(Readable.from([]));
  }
  async function* lines(next: IteratorResult<unknown>) {
    try {
      if (head !== '') yield head;
      for (; !next.done; next = await iterator.next()) yield write(next.value);
    } finally {
      await iterator.return?.();
    }
  }
  return reply.header('content-type', type).send(Readable.from(lines(first), { objectMode: false }));
}

export const NDJSON = 'application/x-ndjson; charset=utf-8';

const streamed = (chunks: Chunks): Readable =>
  chunks instanceof Readable ? chunks : Readable.from(chunks, { objectMode: false });

function ended(chunks: Chunks): Readable {
  if (chunks instanceof Readable) chunks.destroy();
  return Readable.from([]);
}

/** Whether an `If-None-Match` names this entity tag. */
export function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '') === etag);
}

/** Parses a single range; null, for the whole content, on several or malformed ones (RFC 9110, 14.2). */
export function rangeOf(header: string | undefined, size: number): ByteRange | null | 'unsatisfiable' {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '');
  if (!match || (match[1] === '' && match[2] === '')) return null;
  if (match[1] === '') {
    const last = Math.min(Number(match[2]), size);
    return last === 0 ? 'unsatisfiable' : { start: size - last, end: size - 1 };
  }
  const start = Number(match[1]);
  const end = match[2] === '' ? size - 1 : Number(match[2]);
  if (match[2] !== '' && end < start) return null;
  return start >= size ? 'unsatisfiable' : { start, end: Math.min(end, size - 1) };
}

/** Content disposition with an ASCII name for old clients, and the exact name in RFC 8187's form. */
export function disposition(filename: string): string {
  const plain = filename.replace(/[^\x20-\x7e]|["\\]/g, '_');
  const exact = encodeURIComponent(filename.replace(/\p{Cs}/gu, '\ufffd')).replace(
    /['()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16)}`,
  );
  return `attachment; filename="${plain}"` + (plain === filename ? '' : `; filename*=UTF-8''${exact}`);
}
