/**
 * A model call whose attempt fails after it has streamed, and begins anew: the feed says so with `reset`. From then on nothing of the failed
 * attempt stands, in no protocol, whether or not the next one ever says a word; and what the client has at the end is the turn's text.
 */
import { createFrames } from '../../src/gateway/ag-ui/frames.js';
import { createTaskEvents, taskName } from '../../src/gateway/a2a/task.js';
import { createChunks } from '../../src/gateway/ai-sdk/chunks.js';
import type { Conversations } from '../../src/gateway/core/conversations.js';
import { createTextDeltas, answerSnapshots, type AnswerSnapshot } from '../../src/gateway/core/answer.js';
import { createResponseEvents } from '../../src/gateway/openai/frames.js';
import { readSettings } from '../../src/gateway/openai/settings.js';
import { responseId } from '../../src/gateway/openai/responses.js';
import type { TurnEvent } from '../../src/records/feed-event.js';
import { turnView } from '../../src/records/turn-view.js';
import { changesOf, feedOf, finished, streamed, turn } from '../support/turn-events.js';

/** Pieces of texts as one's client has them, each under an id. */
class Texts extends Map<string, string> {
  grow(id: string, text: string): void {
    this.set(id, (this.get(id) ?? '') + text);
  }
  get shown(): string {
    return [...this.values()].join('');
  }
}

const snapshotsOf = async (events: readonly TurnEvent[]): Promise<AnswerSnapshot[]> => {
  const core = { client: { history: () => Promise.resolve([]) } } as unknown as Conversations;
  const snapshots: AnswerSnapshot[] = [];
  const segment = { conversation: 'c', turn, mayPause: false };
  for await (const snapshot of answerSnapshots(core, segment, feedOf(events))) snapshots.push(snapshot);
  return snapshots;
};

/** What the client of each protocol shows after these events. */
const SHOWN: Readonly<Record<string, (events: readonly TurnEvent[]) => Promise<string>>> = {
  async changes(events) {
    const texts = new Texts();
    for (const event of await changesOf(events)) {
      if (event.kind === 'grow') texts.grow(event.part, event.text);
      if (event.kind === 'void') for (const { id } of event.parts) texts.delete(id);
    }
    return texts.shown;
  },
  async a2a(events) {
    const [texts, encoder] = [new Texts(), createTaskEvents(taskName('c', turn))];
    for (const [at] of events.entries()) {
      for (const update of encoder.show(turnView(events.slice(0, at + 1)))) {
        if (!('artifactUpdate' in update)) continue;
        const { artifact, append } = update.artifactUpdate;
        const text = artifact.parts.map((part) => ('text' in part ? part.text : '')).join('');
        if (append !== true) texts.set(artifact.artifactId, '');
        texts.grow(artifact.artifactId, text);
      }
    }
    return texts.shown;
  },
  async 'ag-ui'(events) {
    const [texts, encoder] = [
      new Texts(),
      createFrames({ threadId: 't', runId: 'r', conversation: 't', turn, messages: [], state: {}, continues: false }),
    ];
    for (const event of await changesOf(events)) {
      for (const frame of encoder.take(event) as unknown as readonly Record<string, never>[]) {
        const { type, messageId, delta, metadata } = frame as unknown as {
          readonly [name: string]: string;
          readonly metadata: { readonly perdura?: { readonly void?: boolean } } & string;
        };
        if (type === 'TEXT_MESSAGE_CONTENT') texts.grow(messageId ?? '', delta ?? '');
        if (type === 'TEXT_MESSAGE_END' && metadata?.perdura?.void === true) texts.delete(messageId ?? '');
      }
    }
    return texts.shown;
  },
  async 'ai-sdk'(events) {
    const [texts, encoder] = [new Texts(), createChunks({ turn, messageId: turn })];
    for (const event of await changesOf(events)) {
      for (const chunk of encoder.take(event)) {
        if (chunk.type === 'text-delta') texts.grow(chunk.id, chunk.delta);
        if (chunk.type === 'text-end' && chunk.providerMetadata?.['perdura']?.['void'] === true) texts.delete(chunk.id);
      }
    }
    return texts.shown;
  },
  async responses(events) {
    const texts = new Texts();
    const encoder = createResponseEvents({
      id: responseId('c', turn),
      created_at: 1,
      model: 'm',
      conversation: 'c',
      settings: readSettings({}),
    });
    for (const one of (await snapshotsOf(events)).flatMap((snapshot) => [...encoder.take(snapshot)])) {
      const event = one as unknown as { type: string; item_id: string; delta: string; item: { id: string; status: string } };
      if (event.type === 'response.output_text.delta') texts.grow(event.item_id, event.delta);
      if (event.type === 'response.output_item.done' && event.item.status === 'incomplete') texts.delete(event.item.id);
    }
    return texts.shown;
  },
};

const failed = [streamed('text', 'a', 'a.1', 'It is '), streamed('text', 'a', 'a.1', 'rain')];
const reset: TurnEvent = { kind: 'reset', turn, call: 'a', attempt: 'a.2' };
const again = [streamed('text', 'a', 'a.2', 'It '), streamed('text', 'a', 'a.2', 'snows.')];

describe.each(Object.entries(SHOWN))('%s', (_name, shown) => {
  test('what a failed attempt has said stands until the reset, and no longer', async () => {
    expect(await shown(failed)).toBe('It is rain');
    expect(await shown([...failed, reset])).toBe('');
    expect(await shown([...failed, reset, again[0]!])).toBe('It ');
    expect(await shown([...failed, reset, ...again])).toBe('It snows.');
    expect(await shown([...failed, reset, ...again, finished('It snows.')])).toBe('It snows.');
  });

  test('a turn that is stopped after the reset has said nothing', async () => {
    expect(await shown([...failed, reset, finished('', { stopReason: 'interrupted' })])).toBe('');
  });

  test('the reset of another call takes nothing away', async () => {
    expect(await shown([...failed, { ...reset, call: 'b' }])).toBe('It is rain');
  });
});

describe('one text, which cannot take anything back', () => {
  const sent = async (events: readonly TurnEvent[]): Promise<string> => (await snapshotsOf(events)).map(createTextDeltas()).join('');

  test('is silent after a reset until the next attempt has said as much, and an error where it says something else', async () => {
    expect(await sent([...failed, reset, streamed('text', 'a', 'a.2', 'It is ra')])).toBe('It is rain');
    const whole = 'It is raining.';
    expect(await sent([...failed, reset, streamed('text', 'a', 'a.2', whole), finished(whole)])).toBe(whole);
    await expect(sent([...failed, reset, ...again])).rejects.toThrow(/began its answer anew/);
  });
});
