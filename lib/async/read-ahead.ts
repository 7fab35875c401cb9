import { Signal } from './signal';

/**
 * The items of `source` in their order. It is read ahead while the caller is at work, until those that wait for the
 * caller are `bound` together: many small ones or one large one. When the caller stops, so does the reading.
 * @throws what the source throws, after all that it gave before
 */
export async function* readAhead<T extends object>(
  source: AsyncIterable<T>,
  bound: number,
  sizeOf: (item: T) => number,
): AsyncGenerator<T, void> {
  const waiting: T[] = [];
  let size = 0;
  let over = false;
  const news = new Signal();
  const room = new Signal();
  const read = async () => {
    try {
      for await (const item of source) {
        waiting.push(item);
        size += sizeOf(item);
        news.raise();
        while (size >= bound && !over) await room.wait(Infinity);
        if (over) return;
      }
    } finally {
      over = true;
      news.raise();
    }
  };
  const reading = read();
  // Met when it is this item's turn, or by nobody who still wants it.
  reading.catch(() => undefined);
  try {
    while (waiting.length > 0 || !over) {
      const item = waiting.shift();
      if (item === undefined) {
        await news.wait(Infinity);
        continue;
      }
      size -= sizeOf(item);
      room.raise();
      yield item;
    }
    await reading;
  } finally {
    over = true;
    room.raise();
    await reading.catch(() => undefined);
  }
}
