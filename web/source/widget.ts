/** Messages of a widget as those of an overlay with one layer; the widget's type comes with the first message. */
export class WidgetLayer {
  private type = '';

  constructor(private readonly id: string) {}

  update({ type, config, revision, ...state }: Record<string, unknown>): Record<string, unknown> {
    if (typeof type === 'string') this.type = type;
    if (config === undefined) return state;
    const layer = { id: this.id, type: this.type, config, sort_order: 0 };
    return type === undefined ? { ...state, revision, changed: [layer] } : { ...state, revision, layers: [layer] };
  }
}
