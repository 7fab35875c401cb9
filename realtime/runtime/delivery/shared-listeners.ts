/** Where Node's emitters keep their listeners, by event. */
type Listeners = Record<string, unknown>;
interface Emitter {
  _events?: Listeners;
}

/**
 * Listeners that emitters of one kind have in common, in one table under those of all: a table for each is as large as
 * many a connection's own state. What an emitter is given later is its own; of the common ones it can be relieved of
 * all at once, as `ws` does at a connection's end, and not of one.
 */
export class SharedListeners {
  private common: Listeners | null = null;
  private Own: (new () => Listeners) | null = null;

  /** Does nothing for one whose listeners are others than those of the first. */
  share(emitter: object): void {
    const own = (emitter as Emitter)._events;
    if (own === undefined) return;
    const common = (this.common ??= Object.assign(Object.create(null) as Listeners, own));
    const names = Object.keys(own);
    if (names.length !== Object.keys(common).length || names.some((name) => own[name] !== common[name])) return;
    (emitter as Emitter)._events = new (this.Own ??= over(common))();
  }
}

/** Objects of a class have no room for members that they may get, where others have some for four. */
function over(common: Listeners): new () => Listeners {
  class Own {}
  Object.setPrototypeOf(Own.prototype, common);
  return Own as new () => Listeners;
}
