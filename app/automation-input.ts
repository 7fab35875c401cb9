import { z } from 'zod';

const NAME_TEXT = 'name must be 1 to 100 characters';
export const automationNameInput = z.string().trim().min(1, NAME_TEXT).max(100, NAME_TEXT);
export const automationDescriptionInput = z.string().trim().max(500);
