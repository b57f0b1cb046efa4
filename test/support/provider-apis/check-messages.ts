/** The rules for `messages`, in the order in which the API seems to apply them: each message's shape first, then how they fit together. */
import { extraField, isRecord, toolIdPattern, toolNamePattern, type Fields } from './check-fields.js';

type Block = Record<string, unknown> & { readonly type: string };

interface Message {
  /** Where it stands in the request. */
  readonly index: number;
  readonly role: string;
  readonly blocks: readonly { readonly path: string; readonly block: Block }[];
}

const knownOfMessage: Fields = new Set(['role', 'content']);

const knownOfBlock: ReadonlyMap<string, Fields> = new Map([
  ['text', new Set(['type', 'text', 'cache_control', 'citations'])],
  ['tool_use', new Set(['type', 'id', 'name', 'input', 'cache_control', 'caller', 'toolset_name'])],
  ['tool_result', new Set(['type', 'tool_use_id', 'content', 'is_error', 'cache_control', 'toolset_name'])],
  ['thinking', new Set(['type', 'thinking', 'signature'])],
  ['redacted_thinking', new Set(['type', 'data'])],
  ['image', new Set(['type', 'source', 'cache_control', 'transformations'])],
  ['document', new Set(['type', 'source', 'cache_control', 'citations', 'context', 'title'])],
]);

export function checkMessages(body: Record<string, unknown>): string | undefined {
  const list = body.messages as readonly unknown[];
  if (list.length === 0) return 'messages: at least one message is required';
  const messages: Message[] = [];
  for (const [index, message] of list.entries()) {
    const wrong = checkMessage(message, index, index === list.length - 1);
    if (wrong !== undefined) return wrong;
    messages.push(toMessage(message as Record<string, unknown>, index));
  }
  if (messages[0]?.role !== 'user') return 'messages: first message must use the "user" role';
  return checkToolPairs(messages) ?? checkToolsDefined(messages, body.tools) ?? checkLast(messages);
}

function checkMessage(message: unknown, index: number, isLast: boolean): string | undefined {
  const path = `messages.${index}`;
  if (!isRecord(message)) return `${path}: Input should be a valid dictionary or object to extract fields from`;
  const { role, content } = message;
  if (role === 'system') {
    return 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.';
  }
  if (role !== 'user' && role !== 'assistant') return `${path}.role: Input should be 'user' or 'assistant'`;
  const extra = extraField(message, knownOfMessage);
  if (extra !== undefined) return `${path}.${extra}: Extra inputs are not permitted`;
  if (content === undefined) return `${path}.content: Field required`;
  if (typeof content !== 'string' && !Array.isArray(content)) return `${path}.content: Input should be a valid list`;
  if (content.length === 0) {
    if (isLast && role === 'assistant') return undefined;
    return `${path}: all messages must have non-empty content except for the optional final assistant message`;
  }
  if (typeof content === 'string') return checkText(content);
  for (const [at, block] of content.entries()) {
    const wrong = checkBlock(block, role, `${path}.content.${at}`);
    if (wrong !== undefined) return wrong;
  }
  const final = content.at(-1) as Block;
  if (role === 'assistant' && (final.type === 'thinking' || final.type === 'redacted_thinking')) {
    return `${path}: The final block in an assistant message cannot be \`${final.type}\`.`;
  }
  return undefined;
}

function checkBlock(block: unknown, role: string, path: string): string | undefined {
  if (!isRecord(block)) return `${path}: Input should be a valid dictionary or object to extract fields from`;
  if (block.type === undefined) return `${path}.type: Field required`;
  const known = knownOfBlock.get(String(block.type));
  if (!known) {
    return `${path}: Input tag '${String(block.type)}' found using 'type' does not match any of the expected tags: '${[...knownOfBlock.keys()].join("', '")}'`;
  }
  const at = `${path}.${String(block.type)}`;
  const extra = extraField(block, known);
  if (extra !== undefined) return `${at}.${extra}: Extra inputs are not permitted`;
  const place = path.replace(/\.content\.\d+$/, '');
  switch (block.type) {
    case 'document':
      return role === 'user' ? undefined : `${place}: \`document\` blocks can only be in \`user\` messages`;
    case 'text':
      return typeof block.text === 'string' ? checkText(block.text) : `${at}.text: Field required`;
    case 'tool_use':
      return role === 'assistant' ? checkToolUse(block, at) : `${place}: \`tool_use\` blocks can only be in \`assistant\` messages`;
    case 'tool_result':
      return role === 'user' ? checkToolResult(block, at) : `${place}: \`tool_result\` blocks can only be in \`user\` messages`;
    case 'thinking':
      if (role !== 'assistant') return `${place}.content: thinking blocks may only be in \`assistant\` messages`;
      if (typeof block.thinking !== 'string') return `${at}.thinking: Field required`;
      if (typeof block.signature !== 'string') return `${at}.signature: Field required`;
      return block.signature === '' ? `${path}: Invalid \`signature\` in \`thinking\` block` : undefined;
    default:
      return undefined;
  }
}

function checkText(text: string): string | undefined {
  if (text === '') return 'messages: text content blocks must be non-empty';
  return text.trim() === '' ? 'messages: text content blocks must contain non-whitespace text' : undefined;
}

function checkToolUse(block: Record<string, unknown>, at: string): string | undefined {
  if (typeof block.id !== 'string') return `${at}.id: Field required`;
  if (!toolIdPattern.test(block.id)) return `${at}.id: String should match pattern '${toolIdPattern.source}'`;
  if (typeof block.name !== 'string') return `${at}.name: Field required`;
  if (!toolNamePattern.test(block.name)) return `${at}.name: String should match pattern '${toolNamePattern.source}'`;
  if (block.input === undefined) return `${at}.input: Field required`;
  return isRecord(block.input) ? undefined : `${at}.input: Input should be a valid dictionary`;
}

function checkToolResult(block: Record<string, unknown>, at: string): string | undefined {
  const { tool_use_id: id, content, is_error: isError } = block;
  if (typeof id !== 'string') return `${at}.tool_use_id: Field required`;
  if (!toolIdPattern.test(id)) return `${at}.tool_use_id: String should match pattern '${toolIdPattern.source}'`;
  if (content !== undefined && typeof content !== 'string' && !Array.isArray(content)) return `${at}.content: Input should be a valid list`;
  if (isError === true && (content === undefined || content.length === 0)) return `${at}: content cannot be empty if \`is_error\` is true`;
  if (!Array.isArray(content)) return undefined;
  for (const part of content) {
    if (!isRecord(part)) return `${at}.content: Input should be a valid list`;
    if (part.type === 'text' && part.text === '') return 'messages: text content blocks must be non-empty';
    if (isError === true && part.type !== 'text') return `${at}: all content must be type \`text\` if \`is_error\` is true`;
  }
  return undefined;
}

function checkToolPairs(messages: readonly Message[]): string | undefined {
  const all = new Set<unknown>();
  let asked: readonly string[] = [];
  const turns = mergeSameRole(messages);
  for (const [position, turn] of turns.entries()) {
    if (turn.role === 'user') {
      const wrong = checkResults(turn, new Set(asked));
      if (wrong !== undefined) return wrong;
      asked = [];
      continue;
    }
    const uses = turn.blocks.filter(({ block }) => block.type === 'tool_use');
    for (const { path, block } of uses) {
      if (all.has(block.id)) return `${path}: \`tool_use\` ids must be unique`;
      all.add(block.id);
    }
    asked = uses.map(({ block }) => String(block.id));
    const answered = new Set(leadingResults(turns[position + 1]));
    const open = asked.filter((id) => !answered.has(id));
    if (open.length > 0) {
      return (
        `messages.${turn.index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}. ` +
        'Each `tool_use` block must have a corresponding `tool_result` block in the next message.'
      );
    }
  }
  return undefined;
}

function checkResults(turn: Message, asked: ReadonlySet<string>): string | undefined {
  const seen = new Set<string>();
  for (const { path, block } of turn.blocks) {
    if (block.type !== 'tool_result') continue;
    const id = String(block.tool_use_id);
    if (!asked.has(id)) {
      return (
        `${path}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. ` +
        'Each `tool_result` block must have a corresponding `tool_use` block in the previous message.'
      );
    }
    if (seen.has(id)) return `${path}: each \`tool_use\` must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`;
    seen.add(id);
  }
  return undefined;
}

/** Results count only before any other content of the message. */
function leadingResults(turn: Message | undefined): string[] {
  const ids: string[] = [];
  for (const { block } of turn?.blocks ?? []) {
    if (block.type !== 'tool_result') break;
    ids.push(String(block.tool_use_id));
  }
  return ids;
}

function checkToolsDefined(messages: readonly Message[], tools: unknown): string | undefined {
  const talksOfTools = messages.some(({ blocks }) => blocks.some(({ block }) => block.type === 'tool_use' || block.type === 'tool_result'));
  if (!talksOfTools || (Array.isArray(tools) && tools.length > 0)) return undefined;
  return 'Requests which include `tool_use` or `tool_result` blocks must define tools.';
}

function checkLast(messages: readonly Message[]): string | undefined {
  const last = messages.at(-1);
  const block = last?.blocks.at(-1)?.block;
  if (last?.role !== 'assistant' || block?.type !== 'text' || !/\s$/.test(String(block.text))) return undefined;
  return 'messages: final assistant content cannot end with trailing whitespace';
}

/** Messages of one role in a row are one turn to the API. */
function mergeSameRole(messages: readonly Message[]): Message[] {
  const turns: Message[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (last?.role === message.role) turns[turns.length - 1] = { ...message, blocks: [...last.blocks, ...message.blocks] };
    else turns.push(message);
  }
  return turns;
}

function toMessage({ role, content }: Record<string, unknown>, index: number): Message {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : (content as readonly Block[]);
  return { index, role: String(role), blocks: blocks.map((block, at) => ({ path: `messages.${index}.content.${at}`, block })) };
}
