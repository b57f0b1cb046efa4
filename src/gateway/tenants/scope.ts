/** Long-term memory of a tenant's scope, in the names that the tenant knows. */
import type { ScopeMemory } from '../../client/memory.js';
import type { Reveal } from './reveal.js';

interface Frame {
  readonly reveal: Reveal;
  readonly workflowId: (publicId: string) => Promise<string>;
  readonly asked: <T>(work: () => Promise<T>) => Promise<T>;
}

export function createTenantScope(memory: ScopeMemory, scope: string, { reveal, asked, workflowId }: Frame): ScopeMemory {
  const shown = <T>(work: () => Promise<T>): Promise<T> => asked(async () => reveal.value(await work()));
  return {
    scope,
    text: () => asked(() => memory.text()),
    changes: () => shown(() => memory.changes()),
    textOf: (version) => asked(() => memory.textOf(version)),
    history: () => asked(async () => each(await memory.history(), reveal.value)),
    search: (question, { conversation, ...options } = {}) =>
      shown(async () => {
        const own = conversation === undefined ? undefined : await workflowId(conversation);
        return memory.search(question, { ...options, conversation: own });
      }),
    open: (address, around) => shown(() => memory.open(address, around)),
    facts: (options) => shown(() => memory.facts(options)),
    proposals: () => shown(() => memory.proposals()),
    status: () => shown(() => memory.status()),
    wouldForget: (text) => asked(() => memory.wouldForget(text)),
    forget: (text) => asked(() => memory.forget(text)),
    review: (id, decision) => asked(() => memory.review(id, decision)),
    care: (agent) => asked(() => memory.care(agent)),
  };
}

async function* each<T>(items: AsyncIterable<T>, change: (item: T) => Promise<T>): AsyncGenerator<T> {
  for await (const item of items) yield await change(item);
}
