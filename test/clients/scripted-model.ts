/**
 * The model behind the gateway for clients of other people's. What a person says last tells it what to do, one line each:
 *
 * - `call NAME {"an": "input"}`: calls that tool of the client, in the same answer with other such lines; once it has results it repeats them.
 * - `run NAME {"an": "input"}`: calls that tool of the agent's own.
 * - `say WORDS`: says just these.
 * - `cut WORDS`, `refuse WORDS`: says these, and ends for want of room, or since it will not go on.
 * - `slow WORDS`: says these for seconds.
 * - `fail`: is an error of the provider that no second try mends.
 * - `report`: says as JSON what the request of this very call had: tools, choice, stop texts, pictures.
 *
 * Where it must call a tool or answer by a schema, it does so, with values that fit. Otherwise it repeats what was said.
 */
import { TYPED_MARK, SCHEMA_MARK } from '../../src/records/message-parts.js';
import { asObject } from '../../src/models/wire.js';
import { isRecord } from '../../src/platform/json.js';
import { answerTo, latestResults, resultText, saidIn } from '../support/echo-model.js';
import { blocksOf, type ApiRequest } from '../support/provider-apis/api-request.js';
import { callTools, text, type Reply, type ToolCall } from '../support/provider-apis/reply.js';

const PREFIX = 'client__';

const ENDINGS: Readonly<Record<string, Partial<Reply>>> = {
  cut: { stopReason: 'max_tokens' },
  refuse: { stopReason: 'refusal' },
  slow: { chunks: { size: 2, delayMs: 300 } },
};

export function scriptedReply(request: ApiRequest): Reply {
  const said = lastWords(request);
  const results = latestResults(request);
  if (isRecord(request['tool_choice']) && request['tool_choice']['type'] === 'any')
    return callTools(...forced(request, said, results.length > 0));
  const calls = results.length > 0 ? [] : callsIn(said);
  if (calls.length > 0) return callTools(...calls);
  const [, how = '', words] = /^(say|cut|refuse|slow) (.*)$/m.exec(said) ?? [];
  if (words !== undefined) return { ...text(words), ...ENDINGS[how] };
  if (/^fail$/m.test(said)) return { fault: { kind: 'status', status: 400, message: 'this cannot be' } };
  if (/^report$/m.test(said)) return text(JSON.stringify(report(request)));
  const schema = wantedSchema(request);
  if (schema) return text(JSON.stringify(sample(schema, schema)));
  if (results.length > 0) return text(`The tools answered: ${results.map((one) => resultText(one)).join(', ')}`);
  return { ...text(answerTo(said)), chunks: 4 };
}

/** Without what stands before the words that a person has typed. */
function lastWords(request: ApiRequest): string {
  const said = saidIn(request).at(-1) ?? '';
  const [words = ''] = said.split(SCHEMA_MARK);
  return words.split(`${TYPED_MARK}\n`).at(-1) ?? '';
}

function callsIn(said: string): readonly ToolCall[] {
  return [...said.matchAll(/^(call|run) (\S+) (\{.*\})$/gm)].map(([, whose, name = '', input = '']) => ({
    name: whose === 'run' ? name : `${PREFIX}${name}`,
    input: readJson(input),
  }));
}

/** What others write behind it may be no JSON. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** Once there are results, the last tool: loops of agents offer that of their answer behind the others. */
function forced({ tools = [] }: ApiRequest, said: string, hasResults: boolean): readonly ToolCall[] {
  const wanted = hasResults ? [] : callsIn(said).filter(({ name }) => tools.some((tool) => tool.name === name));
  if (wanted.length > 0) return wanted;
  const tool = hasResults ? tools.at(-1) : tools[0];
  return tool ? [{ name: tool.name, input: sample(tool.input_schema, tool.input_schema) }] : [];
}

function wantedSchema(request: ApiRequest): unknown {
  const { format } = asObject(request['output_config']);
  if (format !== undefined) return asObject(format)['schema'];
  const [, json] = (saidIn(request).at(-1) ?? '').split(SCHEMA_MARK);
  return json === undefined ? undefined : readJson(json.slice(0, -1));
}

/** The first value that fits, of the schemas that the clients here send. */
function sample(schema: unknown, root: unknown): unknown {
  if (!isRecord(schema)) return 'anything';
  const { $ref, enum: values, const: only, anyOf, allOf, type, properties = {}, items } = schema as Record<string, unknown>;
  if (typeof $ref === 'string') {
    const found = $ref
      .split('/')
      .slice(1)
      .reduce<unknown>((at, key) => (isRecord(at) ? (at as Record<string, unknown>)[key] : undefined), root);
    return sample(found, root);
  }
  if (only !== undefined) return only;
  if (Array.isArray(values)) return values[0];
  const [first] = [anyOf, allOf].flatMap((list) => (Array.isArray(list) ? (list as unknown[]) : []));
  if (first !== undefined) return sample(first, root);
  switch (Array.isArray(type) ? (type as unknown[])[0] : type) {
    case 'integer':
      return 7;
    case 'number':
      return 7.5;
    case 'boolean':
      return true;
    case 'array':
      return [sample(items, root)];
    case 'object':
      return Object.fromEntries(Object.entries(properties as object).map(([name, one]) => [name, sample(one, root)]));
    default:
      return 'text';
  }
}

function report(request: ApiRequest): object {
  const { tools = [], messages, max_tokens: tokens, ...rest } = request;
  return {
    tools: tools.flatMap(({ name }) => (name.startsWith(PREFIX) ? [name.slice(PREFIX.length)] : [])),
    choice: rest['tool_choice'] ?? null,
    stops: Array.isArray(rest['stop_sequences']) ? rest['stop_sequences'].length : 0,
    pictures: messages.flatMap(({ content }) => blocksOf(content)).filter(({ type }) => type === 'image').length,
    documents: messages.flatMap(({ content }) => blocksOf(content)).filter(({ type }) => type === 'document').length,
    tokens,
  };
}
