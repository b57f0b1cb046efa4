/**
 * The same talk in ten scripts of writing: how far a prompt grows, by the provider's own count, before what is consolidated leaves it, and
 * what is planted in the talk and asked for in the end. The model counts with a public tokenizer (o200k_base) of which the product knows
 * nothing: it has to learn from what is reported.
 */
import type { PerduraClient } from '../../src/client.js';
import { renderRequest } from '../../src/models/anthropic/render.js';
import type { Model, ModelRequest } from '../../src/models/model.js';
import { tokenCounterBy } from '../../src/models/token-counter.js';
import { LANGUAGES, type Language } from '../memory/languages.js';
import { withOwnWorker } from '../own-worker.js';
import type { Row } from '../row.js';

const TURNS = 60;
const PLANTED_EVERY = 4;
const MAX_OFF = 0.1;
const MIN_REACHABLE = 0.95;
/** A prompt that has lost so much of the one before was cut. */
const CUT = 0.9;
/** A tenth of all that agents have by default. */
const AGENT = {
  tools: ['search_memory', 'open_memory'],
  memory: { memoryWindow: 5, keepCount: 1 },
  context: { advanced: { softThreshold: 5_000, hardThreshold: 8_000, truncationThreshold: 10_000 } },
};

interface Outcome {
  readonly language: string;
  /** Tokens of the prompts that were the last before a cut, in the mean. */
  readonly depth: number;
  readonly cuts: number;
  readonly asked: number;
  readonly reached: number;
  readonly called: number;
}

export const scripts: Row = {
  name: 'scripts',
  async measure({ temporal, product: productOf }) {
    const { options } = await productOf('file');
    const { count } = await tokenCounterBy('o200k_base');
    const outcomes: Outcome[] = [];
    for (const language of LANGUAGES) {
      const { model, sizes } = createReader(language, count);
      const needs = { temporal, options, taskQueue: `scripts-${language.name}`, agents: { default: AGENT }, tools: [], model };
      const answers = await withOwnWorker(needs, (client) => talk(client, language));
      const peaks = sizes.filter((size, i) => (sizes[i + 1] ?? size) < size * CUT);
      outcomes.push({
        ...{ language: language.name, cuts: peaks.length, ...answers },
        depth: peaks.reduce((sum, size) => sum + size, 0) / Math.max(1, peaks.length),
      });
    }
    const [english, ...others] = outcomes;
    const share = ({ depth }: Outcome): number => depth / (english?.depth ?? 1);
    const off = (one: Outcome): number => Math.abs(share(one) - 1);
    const furthest = others.reduce((most, one) => (off(one) > off(most) ? one : most));
    const found = Math.min(...outcomes.map(({ reached, asked }) => reached / asked));
    return [
      {
        row: `${LANGUAGES.length} scripts of writing: depth of the prompt that is furthest from English`,
        ...{
          product: 100 * share(furthest),
          unit: '% of English',
          toHold: '90–110 %',
          holds: outcomes.every((one) => off(one) <= MAX_OFF && one.cuts > 0),
        },
        notes: outcomes.map(
          (one) => `${one.language}: ${Math.round(one.depth)} tokens, ${Math.round(100 * share(one))} %, cut ${one.cuts} times`,
        ),
      },
      {
        row: `${LANGUAGES.length} scripts of writing: what is asked is in the request, or a call away, the least of them`,
        ...{ product: 100 * found, unit: '%', toHold: '≥ 95 %', holds: found >= MIN_REACHABLE },
        notes: outcomes.map(({ language, asked, reached, called }) => `${language}: ${reached} of ${asked}, ${called} of them by a call`),
      },
    ];
  },
};

/** Says the planted things between others, then asks for each. */
async function talk(client: PerduraClient, language: Language): Promise<Pick<Outcome, 'asked' | 'reached' | 'called'>> {
  const { id } = await client.start(undefined, { scope: `scripts-${language.name}` });
  const { lines, subjects } = language;
  for (let turn = 0; turn < TURNS; turn++) {
    const n = turn / PLANTED_EVERY;
    const subject = Number.isInteger(n) ? subjects[n] : undefined;
    const words = lines.map((_, i) => lines[(turn + i) % lines.length] ?? '');
    if (subject !== undefined) words.splice(2, 0, stated(language, subject, nameOf(n)));
    await client.send(id, words.join(' '));
  }
  let [reached, called] = [0, 0];
  for (const [n, subject] of subjects.entries()) {
    const { text } = await client.send(id, language.asks.replace('{s}', subject));
    if (!text.includes(nameOf(n))) continue;
    reached += 1;
    if (text.includes(BY_CALL)) called += 1;
  }
  return { asked: subjects.length, reached, called };
}

const BY_CALL = '(found)';

function createReader(language: Language, count: (text: string) => number): { readonly model: Model; readonly sizes: readonly number[] } {
  const sizes: number[] = [];
  const model: Model = {
    provider: 'anthropic',
    stream(request) {
      const inputTokens = count(JSON.stringify(renderRequest(request)));
      const usage = { inputTokens, cachedTokens: 0, outputTokens: 50 };
      const says = (text: string) => Promise.resolve({ blocks: [{ kind: 'text' as const, text }], stop: 'end' as const, usage });
      if (request.tools.length === 0) return says(JSON.stringify(consolidated(request, language)));
      const { messages } = request;
      const at = messages.findLastIndex((message) => message.role === 'user' && message.from === undefined);
      const asked = textIn(messages.slice(at, at + 1));
      const subject = language.subjects.find((one) => asked.endsWith(language.asks.replace('{s}', one)));
      if (subject === undefined) {
        // What a search brings stands in one request alone: no cut makes the next one smaller.
        sizes.push(inputTokens);
        return says(language.lines.slice(0, 2).join(' '));
      }
      const hasCalled = messages.slice(at + 1).some(({ role }) => role === 'tool');
      const name = statementsIn(`${request.system}\n${textIn(messages)}`, language).get(subject);
      if (name !== undefined) return says(`${name} ${hasCalled ? BY_CALL : ''}`);
      if (hasCalled) return says('?');
      const call = {
        kind: 'tool-call' as const,
        callId: 'toolu_1',
        name: 'search_memory',
        input: { question: asked.split('\n').at(-1) ?? '' },
      };
      return Promise.resolve({ blocks: [call], stop: 'tool-calls' as const, usage });
    },
  };
  return { model, sizes };
}

/** Forgets every other one, so that a search has to find it. */
function consolidated({ messages }: ModelRequest, language: Language): object {
  const kept = [...statementsIn(textIn(messages), language)]
    .filter(([subject]) => language.subjects.indexOf(subject) % 2 === 0)
    .map(([subject, name]) => stated(language, subject, name));
  const handover = { goal: '', summary: [language.lines[0], ...kept].join(' '), open_tasks: [] };
  return {
    history_entry: `[2026-11-27 10:00] ${handover.summary}`,
    memory_update: kept.map((line) => `- ${line}`).join('\n'),
    ...(textIn(messages).includes('"handover"') && { handover }),
  };
}

function statementsIn(text: string, { states, subjects }: Language): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const subject of subjects) {
    const [before = '', after = ''] = states.replace('{s}', subject).split('{v}');
    for (const rest of text.split(before).slice(1)) {
      const [, name] = /^([A-Z][a-z]+-\d+)/.exec(rest) ?? [];
      if (name !== undefined && rest.startsWith(after, name.length)) found.set(subject, name);
    }
  }
  return found;
}

function stated({ states }: Language, subject: string, name: string): string {
  return states.replace('{s}', subject).replace('{v}', name);
}

function nameOf(n: number): string {
  return `Heron-${n + 1}`;
}

function textIn(messages: ModelRequest['messages']): string {
  return messages.flatMap((message) => (message.role !== 'assistant' && typeof message.text === 'string' ? [message.text] : [])).join('\n');
}
