import { isPassing } from '../../kernel/failures';
import { NotSent } from '../../kernel/job';

/** Work before a call to a platform: when an engine is unavailable, the call was not made. @throws NotSent */
export async function beforeCall<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw isPassing(error) ? new NotSent('an engine is not available; nothing was sent', { cause: error }) : error;
  }
}
