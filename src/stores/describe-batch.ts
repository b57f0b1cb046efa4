/** What a batch of writes attempts, as the end of the sentence "cannot … of conv_8". */
import type { WriteBatch } from './store.js';

export function describeBatch({ record = [], fence = [], append = [], publish = [], reserve }: WriteBatch): string {
  const parts = [
    ...(record.length > 0 ? [`record ${record.length} messages from slot ${record[0]?.slot}`] : []),
    ...(fence.length > 0 ? [`fence ${fence.length} effects`] : []),
    ...(append.length > 0 ? [`append ${append.length} entries from slot ${append[0]?.slot}`] : []),
    ...(publish.length > 0 ? [`publish ${publish.length} live events`] : []),
    ...(reserve ? [`reserve effect ${reserve.claim.id}`] : []),
  ];
  return parts.length === 0 ? 'write nothing' : parts.join(', ');
}
