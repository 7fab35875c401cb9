import { invalid, type Refuse } from '../../app/operation';
import { isPlatform, type Platform } from '../../domain/common/vendors';

export const UNSUPPORTED = { UNSUPPORTED_PLATFORM: invalid('Unsupported platform') };

/** @throws DomainError UNSUPPORTED_PLATFORM */
export function platformOf(name: string, refuse: Refuse<typeof UNSUPPORTED>): Platform {
  if (!isPlatform(name)) throw refuse('UNSUPPORTED_PLATFORM');
  return name;
}
