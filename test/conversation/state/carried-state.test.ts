/** States that runs have carried, as they are and with one value of them replaced: what is taken can be shown and gone on with. */
import { apply } from '../../../src/conversation/apply.js';
import { openCarried, readCarriedState, LATEST_RULES } from '../../../src/conversation/opening.js';
import { readCarriedQueue } from '../../../src/conversation/memory-workflow/memory-queue.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { approvalsOf } from '../../../src/conversation/turn/approvals.js';
import { detailsOf, contextOf, controlViewOf, queueOf, statusOf } from '../../../src/conversation/views/view.js';
import { readHistories } from '../../replay/history-file.js';

interface Payloads {
  readonly input?: { readonly payloads?: readonly { readonly data: string }[] };
}

const carried = readHistories().flatMap(({ name, history: { events } }) => {
  const { input } = (events[0]?.workflowExecutionStartedEventAttributes ?? {}) as Payloads;
  const data = input?.payloads?.[0]?.data;
  const argument = data === undefined ? undefined : (JSON.parse(Buffer.from(data, 'base64').toString()) as { carried?: object });
  return argument?.carried ? [[name, argument.carried] as const] : [];
});
const states = carried.filter(([, value]) => 'identity' in value) as unknown as [string, ConversationState][];

const open = (value: unknown, { identity, conversation, now }: ConversationState): ReturnType<typeof openCarried> =>
  openCarried(value, { conversation, life: identity.life, rules: LATEST_RULES, at: now + 1 });

/** Shows it in every way, and goes on with it. */
function use(next: ConversationState): void {
  for (const view of [approvalsOf, contextOf, controlViewOf, queueOf, detailsOf]) JSON.stringify(view(next));
  JSON.stringify(statusOf(next, 1));
  nextStep(apply(next, { kind: 'time-passed', at: next.now + 1e9 }));
  const said = { kind: 'message-received', messageId: 'm', text: 'hi', delivery: 'queue', at: next.now + 1 } as const;
  nextStep(apply(next, said));
}

test('every state that a recorded run has carried is taken', () => {
  expect(states.length).toBeGreaterThan(5);
  for (const [name, state] of states)
    expect([name, readCarriedState(state, state.identity.life)]).toEqual([name, { ok: true, value: state }]);
});

test('with any one value replaced it is refused in words, or it can be shown and gone on with', () => {
  const hostile: readonly unknown[] = [null, 5, 9e15, -1, 'x', [], {}, [[0, 2e8]], { toString: 1 }, [null], true];
  let [refused, taken] = [0, 0];
  const thrown = new Set<string>();
  const tried = new Set<string>();
  for (const [name, state] of states) {
    for (const path of placesIn(state)) {
      const place = placeOf(state, path);
      if (tried.has(place)) continue;
      tried.add(place);
      for (const value of hostile) {
        const mutant = withValue(state, path, value);
        const read = open(mutant, state);
        if (!read.ok) refused += 1;
        else {
          taken += 1;
          try {
            use(read.value);
          } catch (error) {
            thrown.add(`${name} ${path.join('.')} = ${JSON.stringify(value)}: ${String(error)}`);
          }
        }
      }
    }
  }
  expect([...thrown]).toEqual([]);
  expect(Math.min(refused, taken)).toBeGreaterThan(1_000);
});

test('an event that it holds back may name no more slots than a state may', () => {
  const [, state] = states[0] ?? [];
  if (!state) throw new Error('no recorded run has carried a state');
  const holding = (last: number): unknown => ({
    ...state,
    lineage: { held: [{ kind: 'chunks-chosen', requestId: 'r', what: 'compact', slots: [[0, last]], at: 1 }] },
  });
  expect(readCarriedState(holding(5), state.identity.life).ok).toBe(true);
  expect(readCarriedState(holding(2e8), state.identity.life)).toEqual({
    ok: false,
    reason: expect.stringContaining('carried.lineage.held[0].slots must be ranges of slots'),
  });
});

test('a state of another life, of another kind, and one that is deep without end are refused', () => {
  const [, state] = states[0] ?? [];
  if (!state) throw new Error('no recorded run has carried a state');
  expect(readCarriedState(state, 'another')).toEqual({ ok: false, reason: 'carried.identity.life is another conversation’s' });
  const deep = JSON.parse(`${'['.repeat(10_000)}${']'.repeat(10_000)}`) as unknown;
  expect(readCarriedState({ ...state, deep }, state.identity.life)).toEqual({
    ok: false,
    reason: 'carried is nested deeper than 100 levels',
  });
  for (const one of [undefined, null, 5, 'x', [], {}]) expect(readCarriedState(one, 'a').ok).toBe(false);
  for (const one of [undefined, null, 5, 'x', [], {}]) expect(readCarriedQueue(one, 'a').ok).toBe(false);
});

/** The same in two states, or at two numbers of a list, where values of one kind stand. */
function placeOf(state: unknown, path: readonly string[]): string {
  const value = path.reduce((of, key) => (of as Record<string, unknown>)[key], state);
  const kind = value === null ? 'null' : Array.isArray(value) ? `list ${value.length === 0 ? 'empty' : 'filled'}` : typeof value;
  return `${path.map((key) => key.replace(/^\d+$/, '#')).join('.')}: ${kind}`;
}

/** Of each object and list one or two members deep in it, where they are many. */
function placesIn(value: unknown, at: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.keys(value)
    .slice(0, Array.isArray(value) ? 2 : undefined)
    .flatMap((key) => [[...at, key], ...placesIn((value as Record<string, unknown>)[key], [...at, key])]);
}

function withValue(of: unknown, [key = '', ...rest]: readonly string[], value: unknown): unknown {
  const inner = rest.length === 0 ? value : withValue((of as Record<string, unknown>)[key], rest, value);
  return Array.isArray(of) ? of.map((item, i) => (String(i) === key ? inner : (item as unknown))) : { ...(of as object), [key]: inner };
}
