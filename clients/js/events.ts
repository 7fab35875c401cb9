import type { EventPayloads, EventPush, EventType, Message } from './channels';

/** An event of a known type, with its payload. */
export type EventOf<Type extends EventType> = Message<'event', Type, EventPush & { payload: EventPayloads[Type] }>;

/** Whether a message of `events:` is of this type; narrows the type of its payload. */
export const isEvent = <Type extends EventType>(
  message: Message<'event', string, EventPush>,
  type: Type,
): message is EventOf<Type> => message.event_type === type;
