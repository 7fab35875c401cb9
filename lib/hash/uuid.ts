const TEXT = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';

/** A UUID as Lumio writes it: lower case, whatever its version. */
export const UUID = new RegExp(`^${TEXT}$`);

const ANY_CASE = new RegExp(`^${TEXT}$`, 'i');

/** Whether the text is a UUID in either case. */
export const isUuid = (text: string): boolean => ANY_CASE.test(text);
