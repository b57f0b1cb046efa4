import type {
  AssistantBlock,
  AssistantMessage,
  JsonValue,
  ModelStop,
  ToolOutcome,
  ToolResultMessage,
  UserMessage,
} from '../../src/records/message.js';
import type { ModelRequest } from '../../src/models/model.js';

export const user = (text: string): UserMessage => ({ role: 'user', text });

export const says = (...blocks: readonly (string | AssistantBlock)[]): AssistantMessage => answer(blocks);

export const stopped = (stop: ModelStop, ...blocks: readonly (string | AssistantBlock)[]): AssistantMessage => answer(blocks, stop);

export const call = (
  callId: string,
  name = 'read_file',
  input: Extract<AssistantBlock, { kind: 'tool-call' }>['input'] = {},
): AssistantBlock => ({
  kind: 'tool-call',
  callId,
  name,
  input,
});

export const thinking = (text: string, provider = 'anthropic', signature: string | undefined = `sig(${text})`): AssistantBlock => ({
  kind: 'thinking',
  text,
  provider,
  ...(signature && { signature }),
});

export const opaque = (value: JsonValue, provider = 'anthropic'): AssistantBlock => ({ kind: 'opaque', provider, value });

export const result = (callId: string, text = 'done', outcome: ToolOutcome = 'ok', name = 'read_file'): ToolResultMessage => ({
  role: 'tool',
  callId,
  name,
  outcome,
  text,
});

export const request = (parts: Partial<ModelRequest> = {}): ModelRequest => ({
  model: 'claude-sonnet-5-5',
  maxTokens: 1_000,
  system: 'You are terse.',
  tools: [],
  messages: [user('hello')],
  ...parts,
});

function answer(parts: readonly (string | AssistantBlock)[], stop?: ModelStop): AssistantMessage {
  const blocks = parts.map((part): AssistantBlock => (typeof part === 'string' ? { kind: 'text', text: part } : part));
  const calls = blocks.some((block) => block.kind === 'tool-call');
  return { role: 'assistant', blocks, model: 'anthropic/claude-sonnet-5-5', stop: stop ?? (calls ? 'tool-calls' : 'end') };
}
