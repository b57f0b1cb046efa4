/** What a store throws: each says what was attempted, and whether trying again may help. */

/** The store cannot be reached or does not take writes; trying again later may help. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
}

/** MEMORY.md or HISTORY as it lies there cannot be used, and a person must see to it: the message says which and how. Trying again does not help. */
export class DocumentRefused extends Error {
  override readonly name = 'DocumentRefused';
}

/** The life was deleted: nothing is read or written for it any more. Trying again does not help. */
export class LifeDeleted extends Error {
  override readonly name = 'LifeDeleted';
  constructor(attempt: string, { conversation, at }: { readonly conversation: string; readonly at: number }) {
    super(`cannot ${attempt}: ${conversation} was deleted on ${new Date(at * 1000).toISOString()}; what it had cannot be brought back`);
  }
}
