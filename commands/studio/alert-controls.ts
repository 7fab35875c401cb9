import { z } from 'zod';
import { hasPermission } from '../../access/authorization/permission-check';
import type { Caller } from '../../access/authentication/caller';
import { command, notFound, permission, post } from '../../app/operation';
import type { Services } from '../../app/services';
import {
  alertControls,
  alertControlsStream,
  type AlertState,
  type AlertPage,
  type StoredAction,
} from '../../domain/studio/alert-controls';
import { maskDrawn, type DrawnEvent } from '../../domain/studio/drawn-events';
import { maskOf } from '../../services/automation/modules/masks';
import { alertPages, loggedEvent } from '../../views/studio/alert-pages';
import { editableOverlay, NOT_AN_EDITOR, OVERLAY_NOT_FOUND, OVERLAYS } from './overlay-parts';

const overlay_id = z.uuid().nullish().describe('Default: all overlays and alert boxes that the caller may edit');
const AlertsControlled = z.object({ success: z.boolean() }).meta({ id: 'AlertsControlled' });
const declared = {
  guard: [OVERLAYS, permission('overlays:edit')],
  output: AlertsControlled,
} as const;
const errors = { ...OVERLAY_NOT_FOUND, ...NOT_AN_EDITOR };

type Controlling = Pick<Caller, 'kind' | 'permissions' | 'user_id'> & { account_id: string };

/** Pages that the caller controls; one overlay is checked by the caller of this function. */
const pagesOf = ({ db }: Pick<Services, 'db'>, caller: Controlling, id: string | null | undefined) => {
  const { account_id, user_id } = caller;
  const edits_widgets = hasPermission(caller, caller.permissions, 'widgets:edit');
  return alertPages(db, { account_id, user_id, edits_widgets }, id ?? null);
};

/** An operation that changes what is stored about the alerts of pages; their sources are sent the change. */
const control = <const Name extends string>(name: Name, summary: string, action: StoredAction) =>
  command({
    ...{ name, summary, ...declared, errors },
    rest: post(`/v1/overlays/alerts/${action}`, { envelope: 'bare' }),
    input: z.object({ overlay_id }),
    async run({ input, caller, act, refuse }, services) {
      const { account_id } = caller;
      if (input.overlay_id) await editableOverlay(services, caller, input.overlay_id, refuse);
      const pages = await pagesOf(services, caller, input.overlay_id);
      await act(alertControls, alertControlsStream(account_id), { type: 'alerts:control', account_id, action, pages });
      return { success: true };
    },
  });

export const pauseOverlayAlerts = control(
  'pauseOverlayAlerts',
  'Lets the alerts of overlays and alert boxes wait',
  'pause',
);
export const resumeOverlayAlerts = control('resumeOverlayAlerts', 'Plays the alerts that waited', 'resume');
export const muteOverlayAlerts = control('muteOverlayAlerts', 'Silences the sounds of alerts', 'mute');
export const unmuteOverlayAlerts = control('unmuteOverlayAlerts', 'Plays the sounds of alerts again', 'unmute');

/** Ends the alert that is shown; nothing is stored. */
export const skipOverlayAlerts = command({
  name: 'skipOverlayAlerts',
  summary: 'Ends the alert that is shown',
  ...declared,
  rest: post('/v1/overlays/alerts/skip', { envelope: 'bare' }),
  input: z.object({ overlay_id }),
  errors,
  async run({ input, caller, refuse }, services) {
    if (input.overlay_id) await editableOverlay(services, caller, input.overlay_id, refuse);
    await send(services, await pagesOf(services, caller, input.overlay_id), 'skip', null);
    return { success: true };
  },
});

/** Plays the alert of an event again; nothing is stored. */
export const replayOverlayAlerts = command({
  name: 'replayOverlayAlerts',
  summary: 'Plays the alert of an event of the log again; an event that no page draws plays nothing',
  ...declared,
  rest: post('/v1/overlays/alerts/replay', { envelope: 'bare' }),
  input: z.object({ event_id: z.uuid(), overlay_id }),
  errors: { ...errors, EVENT_NOT_FOUND: notFound('Event not found') },
  async run({ input, caller, refuse }, services) {
    if (input.overlay_id) await editableOverlay(services, caller, input.overlay_id, refuse);
    const event = await loggedEvent(services.db, caller.account_id, input.event_id);
    if (event === undefined) throw refuse('EVENT_NOT_FOUND');
    if (event === null) return { success: true };
    const shown = maskDrawn(event, await maskOf(services.db, caller.account_id));
    await send(services, await pagesOf(services, caller, input.overlay_id), 'replay', shown);
    return { success: true };
  },
});

async function send(
  { live }: Pick<Services, 'live'>,
  pages: readonly (AlertPage & AlertState)[],
  action: 'skip' | 'replay',
  event: DrawnEvent | null,
): Promise<void> {
  for (const { channel, paused, muted } of pages) {
    const data = { action, paused, muted, event };
    await live.broadcast(channel, { type: 'event', channel, event_type: 'overlay:alerts', data });
  }
}
