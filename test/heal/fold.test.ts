import type { Entry } from '../../src/records/message.js';
import { createFold, type Remainder, type Write } from '../../src/heal/fold.js';
import type { Activity } from '../../src/heal/read-activities.js';
import {
  answerIn,
  compaction,
  done,
  evict,
  finished,
  identity,
  message,
  modelSaid,
  modelStep,
  partStep,
  RESUMED,
  rewind,
  runTool,
  started,
  stepInput,
  storeStep,
  toolInput,
  toolSaid,
  trim,
  undo,
} from './builders.js';

interface Folded extends Remainder {
  readonly writes: readonly Write[];
  /** Of messages: their slots. */
  readonly messages: readonly number[];
  /** What stands in the store, of what is no message. */
  readonly entries: readonly Entry[];
}

function fold(...effects: readonly (readonly Activity[] | Activity)[]): Folded {
  const folding = createFold();
  const writes = effects.flat().flatMap((activity) => folding.take(activity));
  const entries = new Map<number, Entry>();
  for (const write of writes) {
    if ((write.kind === 'entry' || write.kind === 'answer') && !entries.has(write.entry.slot)) entries.set(write.entry.slot, write.entry);
  }
  return {
    writes,
    messages: writes.flatMap((write) => (write.kind === 'message' ? [write.message.slot] : [])),
    entries: [...entries.values()],
    ...folding.end(),
  };
}

function bodies({ writes }: Folded): string[] {
  return writes.flatMap((write) => (write.kind === 'body' ? [write.text] : []));
}

describe('messages and answers', () => {
  test('how a turn ended is known from what was announced of it', () => {
    const usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, costUsd: 0 };
    const error = { type: 'auth', message: 'export a key' };
    const result = { turnId: 'turn_0001', text: '', stopReason: 'failed', usage, toolCalls: 0, error } as const;
    const { writes } = fold(storeStep({ feed: [{ number: 1, event: { kind: 'turn-finished', turn: 'turn_0001', result } }] }));
    expect(writes).toEqual([{ kind: 'turn-end', end: { v: 1, turn: 'turn_0001', stopReason: 'failed', error } }]);
  });

  test('a step brings its messages, then the results of its tools, then its answer', () => {
    const tool = finished(1, 1, 2);
    const { writes } = fold(modelStep({ turn: 1, slot: 3, write: { messages: [message(1, 1)] }, tools: [tool] }));
    expect(writes).toEqual([
      { kind: 'message', message: message(1, 1) },
      { kind: 'entry', entry: toolSaid(2, 1, 1) },
      { kind: 'entry', entry: modelSaid(3, 1) },
    ]);
  });

  test('a step that was deferred, or whose model failed, has written what came before the call', () => {
    for (const ends of ['deferred', 'failed'] as const) {
      const folded = fold(modelStep({ turn: 1, slot: 3, write: { messages: [message(1, 1)] }, tools: [finished(1, 1, 2)], ends }));
      expect(folded.messages).toEqual([1]);
      expect(folded.entries).toEqual([toolSaid(2, 1, 1)]);
    }
  });

  test('a message that had been sent before stays out, and so does one that the receipt does not name', () => {
    const write = { messages: [message(1, 1), message(2, 2), message(3, 3)] };
    const written = {
      messages: [
        { slot: 1, bytes: 1 },
        { slot: 2, bytes: 1, duplicate: 'turn_0001' },
      ],
    };
    expect(fold(storeStep(write, written)).messages).toEqual([1]);
  });

  test('an answer without a word leaves its slot empty', () => {
    expect(fold(modelStep({ turn: 1, slot: 2, answer: { blocks: [] } })).entries).toEqual([]);
  });

  test('a message that came in parts is put together; parts of one that is not written yet stay as they are', () => {
    const json = JSON.stringify({ text: 'a long text', output: { type: 'object' } });
    const parted = { ...message(1, 1, { text: '' }), parts: ['b:1', 'b:2'] };
    const pieces = [partStep(1, json.slice(0, 10), 'b:1'), partStep(1, json.slice(10), 'b:2')];
    const folded = fold(...pieces, partStep(9, 'half of the next', 'b:3'), storeStep({ messages: [parted] }));
    const { parts: _, ...rest } = parted;
    expect(folded.writes).toEqual([{ kind: 'message', message: rest, json }]);
    expect(folded.parts).toEqual(['half of the next']);
    expect(fold(pieces[1]!, storeStep({ messages: [parted] })).writes).toEqual([{ kind: 'message', message: rest, lost: ['b:1', 'b:2'] }]);
  });

  test('the values that the start brought, and what a session begins with, are bodies', () => {
    const startContext = { user: 'u1' };
    const base = { ref: 'b:x', text: '[MEMORY:SEMANTIC]' };
    expect(bodies(fold(modelStep({ turn: 1, slot: 2, write: { startContext }, base })))).toEqual(['{"user":"u1"}', '[MEMORY:SEMANTIC]']);
  });

  test('activities that write nothing are passed over', () => {
    expect(fold({ kind: 'completed', name: 'deliver', input: {}, output: null, at: 1, bytes: 1 }).writes).toEqual([]);
  });
});

test('what a model has made to stand for long results is told by the step that asked for it', () => {
  const citations = [{ item: 'mem_0123456789ab', citation: 'ten pages on plums' }];
  const made = { turn: 1, slot: 2, citations };
  expect(fold(modelStep(made)).writes[0]).toEqual({ kind: 'citation', ...citations[0] });
  const result = { answer: answerIn(stepInput(made)), citations };
  const late = storeStep(
    { settle: [{ effect: 'turn_0001/m1', entry: null }] },
    { committed: [{ effect: 'turn_0001/m1', result: result as never }] },
  );
  expect(fold(late).writes).toEqual([{ kind: 'citation', ...citations[0] }]);
});

describe('what the store did not take, or not yet', () => {
  test('a step without a result has written nothing; what carries the same again brings it', () => {
    const made = { turn: 1, slot: 2, write: { messages: [message(1, 1)] } };
    expect(fold(started('model-step', stepInput(made))).writes).toEqual([]);
    expect(fold(started('model-step', stepInput(made)), modelStep(made)).messages).toEqual([1]);
  });

  test('a result that the store did not take comes with the step that wrote it, not before', () => {
    const answered = modelStep({ turn: 1, slot: 2, answer: { persisted: false } });
    expect(fold(answered).entries).toEqual([]);
    expect(fold(answered, storeStep({ entries: [modelSaid(2, 1)] })).entries).toEqual([modelSaid(2, 1)]);
    const ran = runTool(finished(1, 1, 3, { persisted: false }));
    expect(fold(ran).entries).toEqual([]);
    expect(fold(ran, modelStep({ turn: 1, slot: 4, write: { entries: [toolSaid(3, 1, 1)] } })).entries).toEqual([
      toolSaid(3, 1, 1),
      modelSaid(4, 1),
    ]);
  });
});

describe('fences', () => {
  const instead = toolSaid(3, 1, 1, { outcome: 'unknown', text: 'Interrupted, outcome unknown.' });
  const settle = [{ effect: 'turn_0001/c1', entry: instead }];

  test('a fenced result counts for its cost alone', () => {
    expect(fold(modelStep({ turn: 1, slot: 2, answer: { fenced: true } })).entries).toEqual([]);
    expect(fold(runTool(finished(1, 1, 3, { fenced: true, contextChange: { ref: 'b:1', on: null } }))).writes).toEqual([]);
  });

  test('what stands in the place of a settled result is written, whether its own comes late or never', () => {
    const late = runTool(finished(1, 1, 3, { fenced: true }));
    expect(fold(started('run-tool', toolInput(finished(1, 1, 3))), storeStep({ settle })).entries).toEqual([instead]);
    expect(fold(storeStep({ settle }), late).entries).toEqual([instead]);
    expect(fold(late, storeStep({ settle })).entries).toEqual([instead]);
  });

  test('a result that the store did not take, and that was settled, stays out', () => {
    const lost = runTool(finished(1, 1, 3, { persisted: false }));
    expect(fold(lost, storeStep({ settle })).entries).toEqual([instead]);
    expect(fold(storeStep({ settle }), lost).entries).toEqual([instead]);
  });

  test('an effect that had committed before its fence keeps its own entry, with the place that it was started for', () => {
    const result = finished(1, 1, 3);
    const late = storeStep({ settle }, { committed: [{ effect: 'turn_0001/c1', result: result as never }] });
    expect(fold(started('run-tool', toolInput(result, 7)), late).entries).toEqual([toolSaid(3, 1, 1, { seq: 7 })]);
    expect(fold(late, runTool(result)).entries).toEqual([toolSaid(3, 1, 1)]);
    expect(fold(runTool(result), late).entries).toEqual([toolSaid(3, 1, 1)]);
  });

  test('so does a model call, and with it what its session begins with', () => {
    const made = { turn: 1, slot: 2 };
    const result = { answer: answerIn(stepInput(made)), base: { ref: 'b:1', text: 'what the scope knows' } };
    const settled = storeStep(
      { settle: [{ effect: 'turn_0001/m1', entry: null }] },
      { committed: [{ effect: 'turn_0001/m1', result: result as never }] },
    );
    const folded = fold(started('model-step', stepInput(made)), settled);
    expect(folded.entries).toEqual([modelSaid(2, 1)]);
    expect(bodies(folded)).toEqual(['what the scope knows']);
    // Whoever knows no more of it cannot say where in its turn it stood.
    expect(fold(settled).entries).toEqual([]);
  });

  test('a tool that rode on a step which never ended is known by its fence', () => {
    const result = finished(1, 2, 4);
    const step = started('model-step', stepInput({ turn: 1, slot: 5, tools: [finished(1, 1, 3), result] }));
    const settled = storeStep(
      { settle: [{ effect: result.callId, entry: null }] },
      { committed: [{ effect: result.callId, result: result as never }] },
    );
    expect(fold(step, settled).entries).toEqual([toolSaid(4, 1, 2, { seq: 4 })]);
  });

  test('a report, a decision, a cancelled call: what no activity has made is an answer too', () => {
    const entry = toolSaid(3, 1, 1, { text: 'the report' });
    expect(fold(modelStep({ turn: 1, slot: 4, write: { settle: [{ effect: 'turn_0001/c1', entry }] } })).writes).toEqual([
      { kind: 'answer', entry },
      { kind: 'entry', entry: modelSaid(4, 1) },
    ]);
  });
});

test('values that tools share come with what they stood on', () => {
  const contextChange = { ref: 'b:2', on: { ref: 'b:1' }, values: { seen: true } };
  const result = finished(1, 1, 3, { contextChange, appContext: { ref: 'b:3' } });
  expect(fold(runTool(result)).writes[0]).toEqual({ kind: 'values', change: contextChange, whole: { ref: 'b:3' } });
});

describe('what older turns have become', () => {
  test('a compaction has an episode of its session, facts, a base and an archive', () => {
    const folded = fold(compaction(1, [[1, 4]], 1));
    expect(folded.episodes).toMatchObject([{ id: 'ep_0001', session: 2, epoch: 2, slots: [[1, 4]], made: { inputsHash: 'h' } }]);
    expect(folded.facts).toMatchObject([{ epoch: 2, turns: ['turn_0001'], facts: [{ fact: 'fact 1' }] }]);
    expect(bodies(folded)).toEqual(['base 1']);
    expect(folded).toMatchObject({ archived: [[1, 4]], active: [], move: 1 });
  });

  test('one that found nothing leaves nothing', () => {
    const [begun] = compaction(1, [[1, 4]], 3);
    const folded = fold({ ...begun!, kind: 'completed', output: { kind: 'nothing-to-compact', epoch: 2 } });
    expect(folded).toMatchObject({ writes: [], episodes: [], facts: [], archived: [], move: 0 });
  });

  test('one that was taken back is gone, and what it archived is active; the next one stands', () => {
    const folded = fold(compaction(1, [[1, 4]], 1), undo(1, [[1, 4]], 2), compaction(2, [[1, 2]], 3));
    expect(folded.episodes.map(({ id }) => id)).toEqual(['ep_0002']);
    expect(folded.facts.map(({ epoch }) => epoch)).toEqual([3]);
    expect(folded.undone).toEqual([{ epoch: 2, episode: 'ep_0001' }]);
    expect(folded).toMatchObject({ archived: [[1, 2]], active: [[3, 4]], move: 3 });
  });

  test('what left the context is archived, and what was not summarized goes to HISTORY', () => {
    const folded = fold(evict([[1, 6]], 1));
    expect(folded).toMatchObject({ archived: [[1, 6]], fallbacks: [{ requestId: 'ask-1', ts: 7, text: 'raw' }] });
  });

  test('a trim leaves its episode and what the epoch begins with; one that was not worth it leaves nothing', () => {
    const folded = fold(trim(1, [[1, 6]], 1, [[1, 6]]));
    expect(folded).toMatchObject({
      archived: [[1, 6]],
      episodes: [{ id: 'ep_0001', summary: 'summary 1', session: 1, epoch: 2, slots: [[1, 6]] }],
    });
    expect(bodies(folded)).toEqual(['base of trim 1']);
    expect(fold(trim(1, [[1, 6]], 1))).toMatchObject({ archived: [], episodes: [], writes: [] });
  });

  test('of two moves of a slot the higher number counts, in whatever order they ended', () => {
    expect(fold(evict([[1, 4]], 2), undo(1, [[1, 2]], 1))).toMatchObject({ archived: [[1, 4]], active: [], move: 2 });
  });

  test('a truncation leaves its notice, when it dropped something', () => {
    const input = {
      identity,
      epoch: 1,
      number: 1,
      agentHash: 'a1',
      context: [],
      cited: [],
      excess: 5,
      currentTurn: null,
      notice: { slot: 5, turn: 'turn_0002', seq: 1, session: 1 },
    };
    const told = { life: 'l1', epoch: 1, dropped: [], tokens: 0, entries: 0 };
    const notice = { ...toolSaid(5, 2, 1), message: { role: 'user', text: '[3 earlier messages]' } } as const;
    expect(fold(done('truncate', input, told)).writes).toEqual([]);
    expect(fold(done('truncate', input, { ...told, notice })).entries).toEqual([notice]);
  });
});

describe('lives', () => {
  const base = { ref: 'b:b', text: 'told again' };
  const episode = { id: 'ep_0001', ts: 1, turn_ids: ['turn_0001'], summary: 's', tags: [], salience: 1 };
  const episodes = [{ episode: { ...episode, id: 'ep_0002' }, session: 3, slots: [[1, 2]] as const }];

  test('a rewind cuts what came after, and brings back its context, whatever had archived that', () => {
    const folded = fold(compaction(1, [[1, 4]], 1), rewind([[5, 8]], [[3, 4]], 2, { base, episodes }), evict([[3, 3]], 3));
    expect(folded.writes).toContainEqual({ kind: 'cut', cut: expect.objectContaining({ id: 'r2', slots: [[5, 8]] }) });
    expect(folded).toMatchObject({
      archived: [
        [1, 3],
        [5, 8],
      ],
      active: [[4, 4]],
      move: 3,
    });
    expect(folded.episodes[0]).toMatchObject({ id: 'ep_0001', epoch: 2 });
    expect(folded.episodes[1]).toEqual({ ...episode, id: 'ep_0002', session: 3, slots: [[1, 2]], epoch: 0 });
    expect(bodies(folded)).toEqual(['base 1', 'told again']);
  });

  test('one that cut nothing writes no branch', () => {
    expect(fold(rewind([], [[1, 2]], 1)).writes).toEqual([]);
  });

  test('a life that began with turns of another one says so first', () => {
    const beginning = { v: 1, kind: 'fork', of: { conversation: 'c0', life: 'l0' }, turn: 3, shared: [], archived: [[1, 2]] } as const;
    const input = { identity, origin: { kind: 'fork', conversation: 'c0', life: 'l0', turn: 'turn_0003' } } as never;
    const output = {
      ...RESUMED,
      base,
      episodes,
      life: 'l1',
      beginning,
      slot: 4,
      session: 1,
      turns: 3,
      inContext: 1,
      window: [],
      attributes: 'missing' as const,
    };
    const folded = fold(done('open-origin', input, output));
    expect(folded.writes).toEqual([
      { kind: 'beginning', beginning },
      { kind: 'body', text: 'told again' },
    ]);
    expect(folded.episodes).toHaveLength(1);
  });
});
