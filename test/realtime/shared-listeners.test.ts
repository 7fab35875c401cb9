import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';
import { SharedListeners } from '../../realtime/runtime/delivery/shared-listeners';

const heard: string[] = [];
const hear = (what: string) => () => void heard.push(what);
const [message, error, other] = [hear('message'), hear('error'), hear('other')];
beforeEach(() => void (heard.length = 0));

test.each([['emitters', () => new EventEmitter()] as const, ['streams', () => new Writable()] as const])(
  '%s that share their listeners hear as before, and what one is given or relieved of is its own',
  (_name, make) => {
    const sharing = new SharedListeners();
    const made = Array.from({ length: 3 }, () => make().on('message', message).on('error', error));
    for (const one of made) sharing.share(one);
    const [first, second, third] = made as [EventEmitter, EventEmitter, EventEmitter];
    first.on('error', other).once('finish', other);
    second.removeAllListeners();
    for (const one of made)
      for (const event of ['message', 'error', 'finish']) if (one !== second || event !== 'error') one.emit(event);
    expect(heard).toEqual(['message', 'error', 'other', 'other', 'message', 'error']);
    expect(second.emit('message')).toBe(false);
    expect(third.listeners('error')).toEqual([error]);
  },
);

test('one with other listeners keeps its own', () => {
  const sharing = new SharedListeners();
  const [first, second] = [new EventEmitter().on('message', message), new EventEmitter().on('message', other)];
  sharing.share(first);
  sharing.share(second);
  first.emit('message');
  second.emit('message');
  expect(heard).toEqual(['message', 'other']);
});
