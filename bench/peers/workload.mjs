/**
 * What every peer is asked to do: a user's text → a model that wants one tool → the tool → a model that answers. The model and the
 * tool are the same two functions everywhere; each writes a line when it has been used, since that is what costs money or has an effect.
 */
import { appendFileSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

export const INSTRUCTIONS = 'You are a helpful agent.';
export const ANSWER = 'The quick brown fox jumps over the lazy dog. '.repeat(20).slice(0, 400);
const TOOL_RESULT = 'row,value,comment;'.repeat(200).slice(0, 2_048);
export const userText = (turn) => `Turn ${turn}: please look up item ${turn} and summarise it.`;

/** Where a process stops for ever, so that it can be killed there. */
export const PLACES = ['first model call', 'tool', 'second model call'];

/**
 * `stopAt`: `{ turn, place }`, once; `seen` counts the prompts.
 * Both functions take what the caller has at hand: the whole prompt as one JSON text.
 */
export function createWorkload(folder, stopAt) {
  const file = join(folder, 'effects.jsonl');
  const seen = { calls: 0, promptBytes: 0, lastPromptBytes: 0 };
  const note = (line) => appendFileSync(file, `${JSON.stringify(line)}\n`);
  const stop = async (turn, place) => {
    if (stopAt?.turn !== turn || stopAt.place !== place) return;
    writeSync(1, 'STOPPED\n');
    await new Promise(() => setInterval(() => {}, 1_000));
  };
  return {
    seen,
    /** Answers `{ call }` or `{ text }`. */
    async model(prompt, isAfterTool) {
      const turn = latestTurn(prompt);
      seen.calls += 1;
      seen.lastPromptBytes = Buffer.byteLength(prompt);
      seen.promptBytes += seen.lastPromptBytes;
      note({
        kind: 'model',
        turn,
        part: isAfterTool ? 2 : 1,
        asked: countOf(prompt, `Turn ${turn}:`),
        before: countOf(prompt, `Turn ${turn - 1}:`),
      });
      await stop(turn, isAfterTool ? 'second model call' : 'first model call');
      return isAfterTool ? { text: ANSWER } : { call: { id: `call_${turn}`, name: 'lookup', input: { q: `item ${turn}` } } };
    },
    async tool({ q }) {
      const turn = Number(/\d+/.exec(String(q))?.[0]);
      note({ kind: 'tool', turn });
      await stop(turn, 'tool');
      return TOOL_RESULT;
    },
    effects: () =>
      readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
  };
}

function latestTurn(prompt) {
  return Math.max(0, ...[...prompt.matchAll(/Turn (\d+):/g)].map(([, turn]) => Number(turn)));
}

function countOf(text, part) {
  return text.split(part).length - 1;
}
