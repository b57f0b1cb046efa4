/** Which of our search attributes a namespace has, and how to give it those that are missing. */
import { SearchAttributeType } from '@temporalio/common';
import type { OperatorService } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../../workflows/messages.js';

export interface AttributeHost {
  readonly operatorService: Pick<OperatorService, 'listSearchAttributes' | 'addSearchAttributes'>;
}

/** Temporal's `IndexedValueType`, by the name that the SDK uses. */
const INDEXED_TYPES: Readonly<Partial<Record<SearchAttributeType, number>>> = {
  [SearchAttributeType.KEYWORD]: 2,
  [SearchAttributeType.INT]: 3,
  [SearchAttributeType.DOUBLE]: 4,
};

export async function missingAttributes({ operatorService }: AttributeHost, namespace: string): Promise<string[]> {
  const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
  return Object.keys(SEARCH_ATTRIBUTES).filter((name) => customAttributes?.[name] === undefined);
}

/** Answers with the names that it registered. */
export async function registerAttributes(host: AttributeHost, namespace: string): Promise<string[]> {
  const missing = await missingAttributes(host, namespace);
  if (missing.length === 0) return missing;
  const wanted = Object.values(SEARCH_ATTRIBUTES).filter((key) => missing.includes(key.name));
  const searchAttributes = Object.fromEntries(wanted.map((key) => [key.name, INDEXED_TYPES[key.type] ?? 2]));
  await host.operatorService.addSearchAttributes({ namespace, searchAttributes });
  return missing;
}

const ASK_AGAIN_MS = 60_000;

/** For a worker: the answer at hand, looked up beside and not again once all are there. */
export function createAttributeCheck(host: AttributeHost, namespace: string): () => Promise<boolean> {
  let registered = false;
  let askedAt = -Infinity;
  let asking: Promise<void> | undefined;
  const ask = (): Promise<void> => {
    askedAt = Date.now();
    return missingAttributes(host, namespace)
      .then((missing) => {
        registered = missing.length === 0;
      })
      .catch(() => undefined)
      .finally(() => (asking = undefined));
  };
  asking = ask();
  return async () => {
    if (asking) await Promise.race([asking, new Promise((resolve) => setTimeout(resolve, 300).unref())]);
    else if (!registered && Date.now() - askedAt > ASK_AGAIN_MS) asking = ask();
    return registered;
  };
}
