/**
 * What the model is to do stands in the message that it answers, so that any attempt of any call, on any worker, gets the same answer:
 * `plan:{…}:end`, rounds of tool calls and then words. A task for a sub-agent has a plan of its own inside.
 */
import { blocksOf, type ApiRequest } from '../support/provider-apis/api-request.js';
import { callTools, text, type Reply, type ToolCall } from '../support/provider-apis/reply.js';
import { roundsSoFar, saidIn } from '../support/echo-model.js';
import { pick, type Random } from './random.js';

interface Plan {
  readonly rounds: readonly (readonly ToolCall[])[];
  /** How long the final answer is. */
  readonly words: number;
  /** Milliseconds between the pieces of each answer. */
  readonly pause: number;
}

const SUMMARY = JSON.stringify({
  episodic: { summary: 'They did a number of things.', tags: ['storm'], salience: 0.5 },
  semantic: [{ fact: 'The person is in a hurry.', tags: ['person'], confidence: 0.9, salience: 0.5 }],
});

/**
 * Only the agent itself has tools: what is asked without any is a summary. A whole answer names the messages that it answers, those that
 * came since the last one.
 */
export function answerByPlan(request: ApiRequest): Reply {
  if ((request.tools ?? []).length === 0) return text(SUMMARY);
  const plan = saidIn(request)
    .map((said) => readPlan(lastMessage(said)))
    .findLast((found) => found !== undefined);
  const calls = plan?.rounds[roundsSoFar(request)];
  const chunks = { size: 40, delayMs: plan?.pause ?? 0 };
  const answer = `For ${answeredBy(request)
    .map((id) => `[[${id}]]`)
    .join(' ')}: done as you said. ${'Nothing else is left to do. '.repeat(plan?.words ?? 1)}`;
  return { ...(calls ? callTools(...calls) : text(answer)), chunks };
}

/** As a person's message begins: at the beginning of a line, also behind what the agent remembers. What quotes it does not. */
const BEGINNING = /^\[\[([\w-]+)\]\] Please/gm;

/** The messages of people in the request, oldest first. */
export function marksIn(request: ApiRequest): string[] {
  return saidIn(request).flatMap((said) => [...said.matchAll(BEGINNING)].flatMap(([, id]) => id ?? []));
}

/** The last message in a text that begins with what the agent remembers. */
function lastMessage(said: string): string {
  return said.slice([...said.matchAll(BEGINNING)].at(-1)?.index ?? 0);
}

/** Those since the last answer without calls. */
function answeredBy(request: ApiRequest): string[] {
  const last = request.messages.findLastIndex(
    ({ role, content }) => role === 'assistant' && !blocksOf(content).some(({ type }) => type === 'tool_use'),
  );
  return marksIn({ ...request, messages: request.messages.slice(last + 1) });
}

/** A message with a plan in it, at most `depth` sub-agents deep; a simple one asks for little. */
export function planned(random: Random, depth: number, isSimple = false): string {
  const rounds = Array.from({ length: pick(random, isSimple ? [0, 0, 0, 1] : [0, 0, 1, 1, 2]) }, () =>
    Array.from({ length: pick(random, isSimple ? [1, 1, 1, 2] : [1, 1, 2, 3]) }, () => call(random, depth)),
  );
  const plan: Plan = { rounds, words: pick(random, [1, 5, 80]), pause: pick(random, [0, 0, 5, 40]) };
  return `Please plan:${JSON.stringify(plan)}:end`;
}

function call(random: Random, depth: number): ToolCall {
  const item = `thing ${Math.floor(1e9 * random())}`;
  const ms = Math.floor(200 * random() ** 3);
  const calls: readonly ToolCall[] = [
    { name: 'get_time', input: {} },
    { name: 'get_time', input: {} },
    { name: 'note', input: { item, ms } },
    { name: 'note', input: { item, ms } },
    // Waits for approval.
    { name: 'pay', input: { item, ms } },
  ];
  if (depth === 0 || random() < 0.7) return pick(random, calls);
  const agent = pick(random, ['default', 'brief', 'small']);
  return { name: 'delegate', input: { task: planned(random, depth - 1), title: item, agent } };
}

function readPlan(said: string): Plan | undefined {
  const [begin, end] = [said.indexOf('plan:'), said.lastIndexOf(':end')];
  if (begin < 0 || end < begin) return undefined;
  try {
    return JSON.parse(said.slice(begin + 'plan:'.length, end)) as Plan;
  } catch {
    // Two messages in one text, or one that was cut.
    return undefined;
  }
}
