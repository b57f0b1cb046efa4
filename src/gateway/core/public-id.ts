/** Ids that protocols let clients choose freely, as ids of conversations. */
import { createHash } from 'node:crypto';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';

/** A valid id stays as it is; of any other string a hash stands for it, the same each time. */
export function workflowIdOf(publicId: string): string {
  return ID_PATTERN.test(publicId) ? publicId : `x-${createHash('sha256').update(publicId).digest('base64url')}`;
}
