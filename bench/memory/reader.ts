/**
 * A model by rules that knows nothing but its request: it answers from the newest statement that it finds there, opens one door of
 * those that the prompt names where it finds none, and summarizes by keeping what was stated.
 */
import type { AssistantBlock, ConversationMessage, JsonObject } from '../../src/records/message.js';
import { renderRequest } from '../../src/models/anthropic/render.js';
import type { Model, ModelRequest, ModelResponse } from '../../src/models/model.js';
import { CONVERSATION_HEADING, MEMORY_HEADING } from '../../src/memory/consolidation/prompt.js';
import { answerOfWork, nextStep } from './work.js';
import { GOAL, newest, pathAskedIn, sentence, statementsIn, subjectAskedIn, type Statement } from './statements.js';

/** What one request was like. */
export interface Seen {
  readonly kind: 'summary' | 'answer';
  /** The provider's count: characters over four. */
  readonly tokens: number;
  /** The newest of each subject, in the order of the request. */
  readonly stated: ReadonlyMap<string, string>;
  /** Statements in the memory that stands above the messages. */
  readonly remembered: readonly Statement[];
  /** The person's newest message. */
  readonly question: string;
  readonly body: ReturnType<typeof renderRequest>;
}

const UNKNOWN = 'I do not know.';
const SEARCH = 'search_memory';
const EPISODE = 'read_episode';

export function createReader(onSeen: (seen: Seen) => void): Model {
  return {
    provider: 'anthropic',
    stream(request): Promise<ModelResponse> {
      const body = renderRequest(request);
      const tokens = Math.ceil(JSON.stringify(body).length / 4);
      const blocks = request.tools.length === 0 ? [said(summarized(request))] : answered(request);
      onSeen({ ...seenIn(request), body, tokens });
      const usage = { inputTokens: tokens, cachedTokens: 0, outputTokens: Math.ceil(JSON.stringify(blocks).length / 4) };
      const stop = blocks.some(({ kind }) => kind === 'tool-call') ? 'tool-calls' : 'end';
      return Promise.resolve({ blocks, stop, usage });
    },
  };
}

function seenIn(request: ModelRequest): Omit<Seen, 'body' | 'tokens'> {
  const { system, tools, messages } = request;
  const texts = messages.map(textOf);
  const last = messages.findLast((message) => message.role === 'user' && message.from === undefined);
  return {
    kind: tools.length === 0 ? 'summary' : 'answer',
    stated: newest(statementsIn(asRead(request))),
    remembered: statementsIn([system, ...texts.filter((text) => /^\[MEMORY:/m.test(text))].join('\n')),
    question: last ? textOf(last) : '',
  };
}

/** Of a notice of what has changed in memory. */
const NO_LONGER = /^No longer in it:(?:\n> .*)+/gm;

/**
 * Summaries stand in the order of time, and all that is older before what is newer; what a search brought has the number of its message, and
 * a summary that is read in full its date.
 * What a notice says to be no longer so is not read.
 */
function asRead({ system, messages }: ModelRequest): string {
  const isFound = (message: ConversationMessage): boolean => message.role === 'tool' && message.name === SEARCH;
  const hits = messages.filter(isFound).flatMap((message) => textOf(message).split(/^(?=\[\w+\/\d+\])/m));
  const number = (hit: string): number => Number(/^\[\w+\/(\d+)\]/.exec(hit)?.[1] ?? 0);
  const found = hits.sort((a, b) => number(a) - number(b));
  const isOpened = (message: ConversationMessage): boolean => message.role === 'tool' && message.name === EPISODE;
  const others = messages.filter((message) => !isFound(message) && !isOpened(message));
  return [...messages.filter(isOpened).map(textOf), ...found, system, ...others.map(textOf)].join('\n').replace(NO_LONGER, '');
}

function answered(request: ModelRequest): AssistantBlock[] {
  const { system, tools, messages } = request;
  const texts = messages.map(textOf);
  const at = messages.findLastIndex((message) => message.role === 'user' && message.from === undefined);
  const asked = texts[at] ?? '';
  const calls = messages.slice(at + 1).filter(({ role }) => role === 'tool').length;
  const rounds = Number(/survey (\d+) rounds/.exec(asked)?.[1] ?? 0);
  const round = nextRound(messages.slice(at + 1));
  if (round < rounds) return [call('survey', { round })];
  const goal = newest(statementsIn(asked)).get(GOAL);
  if (goal !== undefined && calls === 0) return [call('set_task', { goal: sentence({ subject: GOAL, value: goal }) })];
  const step = nextStep(asked, calls);
  if (step) return [call(step.name, step.input)];
  const path = pathAskedIn(asked);
  if (path !== undefined) return [answerOfWork(request, path) ?? (calls === 0 ? search(asked) : said(UNKNOWN))];
  const subject = subjectAskedIn(asked);
  if (subject === undefined) return [said('Noted.')];
  const value = newest(statementsIn(asRead(request))).get(subject);
  const door = value === undefined && calls === 0 ? doorTo(asked, [system, ...texts].join('\n'), tools) : undefined;
  if (door) return [door];
  return [said(value === undefined ? UNKNOWN : `It is ${value}.`)];
}

/** After the last one that the prompt still has: the first ones may stand there as a summary. */
function nextRound(messages: readonly ConversationMessage[]): number {
  const rounds = messages.flatMap((message) =>
    message.role === 'assistant'
      ? message.blocks.flatMap((block) =>
          block.kind === 'tool-call' && block.name === 'survey' ? [(block.input as { readonly round: number }).round] : [],
        )
      : [],
  );
  return rounds.length === 0 ? 0 : Math.max(...rounds) + 1;
}

/**
 * Of the ids that the prompt names, the one beside whose name most of the question's words stand. Where not all of them do and it is not
 * the only one, a search for what was asked if the agent has it, and the oldest id otherwise.
 */
function doorTo(asked: string, prompt: string, tools: ModelRequest['tools']): AssistantBlock | undefined {
  const offered = new Set(tools.map(({ name }) => name));
  const subject = subjectAskedIn(asked) ?? '';
  const words = subject.split(' ');
  const lines = prompt.split('\n').flatMap((line) => {
    const [id] = /\b(?:mem|ep)_\w+/.exec(line) ?? [];
    const tool = id?.startsWith('ep_') ? 'read_episode' : 'retrieve_from_memory';
    return id !== undefined && offered.has(tool) ? [{ id, tool, hits: words.filter((word) => line.includes(word)).length }] : [];
  });
  const best = lines.reduce<(typeof lines)[number] | undefined>((most, one) => (one.hits > (most?.hits ?? -1) ? one : most), undefined);
  if (offered.has(SEARCH) && best?.hits !== words.length && new Set(lines.map(({ id }) => id)).size !== 1) return search(asked);
  if (!best) return undefined;
  return call(best.tool, { id: best.id, ...(best.tool === 'retrieve_from_memory' && { transform: 'filtered', match: subject }) });
}

function summarized({ answerSchema, messages }: ModelRequest): string {
  const text = messages.map(textOf).join('\n');
  if (answerSchema?.name === 'memory') return JSON.stringify(consolidated(text));
  const [before = '', record = text] = text.split('The record:');
  const stated = toStatements(newest(statementsIn(record)));
  if (answerSchema?.name !== 'summary') return listed(stated) || 'Nothing was stated.';
  const known = [...before.matchAll(/^- (sem_\w+): (.*)$/gm)].flatMap(([, id, line]) =>
    statementsIn(line ?? '').map((statement) => ({ ...statement, id: id ?? '' })),
  );
  const isKnown = ({ subject, value }: Statement): boolean => known.some((one) => one.subject === subject && one.value === value);
  return JSON.stringify({
    episodic: { summary: listed(stated) || 'Small talk about a harbour.', tags: ['harbour'], salience: 0.5 },
    semantic: stated
      .filter((statement) => statement.subject !== GOAL && !isKnown(statement))
      .map((statement) => ({
        ...{ fact: `${sentence(statement)}.`, tags: [], confidence: 0.9, salience: 0.6 },
        supersedes: known.filter(({ subject }) => subject === statement.subject).map(({ id }) => id),
      })),
    retired: [],
    fold: listed(toStatements(newest(statementsIn(before.slice(before.indexOf('to be folded')))))),
  });
}

function toStatements(values: ReadonlyMap<string, string>): Statement[] {
  return [...values].map(([subject, value]) => ({ subject, value }));
}

/** The whole memory anew: a line that says something else of a subject than the conversation goes. */
function consolidated(text: string): JsonObject {
  const memory = text.slice(text.indexOf(MEMORY_HEADING) + MEMORY_HEADING.length, text.indexOf(CONVERSATION_HEADING)).trim();
  const stated = newest(statementsIn(text.slice(text.indexOf(CONVERSATION_HEADING))));
  const goal = stated.get(GOAL);
  stated.delete(GOAL);
  const kept = memory
    .split('\n')
    .filter((line) => line !== '' && line !== '(empty)' && !statementsIn(line).some(({ subject }) => stated.has(subject)));
  const added = [...stated].map(([subject, value]) => `- ${sentence({ subject, value })}`);
  const handover = {
    goal: goal === undefined ? '' : sentence({ subject: GOAL, value: goal }),
    summary: listed(toStatements(stated)),
    open_tasks: [],
  };
  const time = /\[(\d{4}-\d\d-\d\d \d\d:\d\d)\]/.exec(text)?.[1] ?? '?';
  return {
    history_entry: `[${time}] ${added.length === 0 ? 'Small talk about a harbour.' : added.join('; ')}`,
    memory_update: [...kept, ...added].join('\n'),
    ...(text.includes('"handover"') && { handover }),
  };
}

function listed(stated: readonly Statement[]): string {
  return stated.map((statement) => `${sentence(statement)}.`).join(' ');
}

function textOf(message: ConversationMessage): string {
  if (message.role !== 'assistant') return typeof message.text === 'string' ? message.text : '';
  return message.blocks.flatMap((block) => (block.kind === 'text' && typeof block.text === 'string' ? [block.text] : [])).join('');
}

function search(asked: string): AssistantBlock {
  return call(SEARCH, { question: asked.replace(/^.*Remind me: /s, '') });
}

function said(text: string): AssistantBlock {
  return { kind: 'text', text };
}

function call(name: string, input: JsonObject): AssistantBlock {
  return { kind: 'tool-call', callId: 'toolu_1', name, input };
}
