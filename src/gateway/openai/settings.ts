/**
 * What a request of the Responses API has set, as every answer to it has it again, with the defaults of the open specification
 * (openresponses.org). That an agent is set in other places does not matter here: clients read what they have sent.
 */
import { z } from 'zod';
import { LIMITS } from '../../conversation/protocol/contract.js';
import type { JsonObject, JsonValue } from '../../records/message.js';

/** What has another form is not echoed; whether it is refused, the request decides. */
function echoed<Schema extends z.ZodType, Default>(schema: Schema, without: Default) {
  return schema
    .nullish()
    .catch(undefined)
    .transform((value): z.output<Schema> | Default => (value ?? without) as z.output<Schema> | Default);
}

const text = z.string().max(4_096);
const object = z.record(z.string(), z.json());
const TOOL = { type: 'function', name: '', description: null, parameters: null, strict: null };
const SCHEMA = { type: 'json_schema', name: 'answer', description: null, schema: {}, strict: false };
const REASONING = { effort: null, summary: null };

const settings = z.object({
  previous_response_id: echoed(text, null),
  background: echoed(z.boolean(), false),
  store: echoed(z.boolean(), true),
  metadata: echoed(z.record(z.string(), z.string()), {}),
  instructions: echoed(z.string(), null),
  tools: echoed(
    z.array(object.transform((tool) => (tool['type'] === 'function' ? { ...TOOL, ...tool } : tool))),
    [] as readonly JsonObject[],
  ),
  tool_choice: echoed(z.union([z.string(), object]), 'auto'),
  parallel_tool_calls: echoed(z.boolean(), true),
  text: echoed(
    z.looseObject({
      format: echoed(
        object.transform((format) => (format['type'] === 'json_schema' ? { ...SCHEMA, ...format } : format)),
        { type: 'text' },
      ),
    }),
    { format: { type: 'text' } },
  ),
  truncation: echoed(z.enum(['auto', 'disabled']), 'disabled'),
  temperature: echoed(z.number(), 1),
  top_p: echoed(z.number(), 1),
  presence_penalty: echoed(z.number(), 0),
  frequency_penalty: echoed(z.number(), 0),
  top_logprobs: echoed(z.int(), 0),
  reasoning: echoed(
    object.transform((reasoning) => ({ ...REASONING, ...reasoning })),
    REASONING,
  ),
  max_output_tokens: echoed(z.int(), null),
  max_tool_calls: echoed(z.int(), null),
  service_tier: echoed(text, 'default'),
  safety_identifier: echoed(text, null),
  prompt_cache_key: echoed(text, null),
  user: echoed(text, null),
});

export type ResponseSettings = z.output<typeof settings>;

export function readSettings(request: unknown): ResponseSettings {
  return settings.parse(request);
}

/** What is kept with the message, so that the response has it again whenever it is read. Of what is too long the rest is kept. */
export function toEcho(given: ResponseSettings): JsonObject | undefined {
  const defaults: Readonly<Record<string, unknown>> = readSettings({});
  const isSet = ([name, value]: readonly [string, unknown]): boolean => JSON.stringify(value) !== JSON.stringify(defaults[name]);
  const set = Object.entries(given).filter(isSet) as [string, JsonValue][];
  for (const without of [[], ['tools'], ['tools', 'instructions', 'text']]) {
    const kept = Object.fromEntries(set.filter(([name]) => !without.includes(name)));
    if (Object.keys(kept).length > 0 && Buffer.byteLength(JSON.stringify(kept)) <= LIMITS.echoBytes) return kept;
  }
  return undefined;
}
