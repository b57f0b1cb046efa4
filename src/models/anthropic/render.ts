/**
 * From our words to the Messages API's. Pure, and the same bytes for the same request: the prompt cache goes by them, so
 * every object is written in one fixed order of keys.
 *
 * - Messages come normalized. Neighbours on the person's side become one user message, tool results first.
 * - The API refuses history with tools in a request without any: a stand-in is sent then, and may not be called.
 * - At most four cache marks: the part of the system prompt that sessions share (the tools stand before it), the rest of it with what is
 *   remembered, and the ends of the last two user messages.
 * - A cached beginning is never rewritten: a mark before a whole result stays when the result is cited, so that the cache finds it again.
 *
 * @rule anthropic/blocks-as-they-came: Assistant blocks go back as they came, in their order. (test: test/models/render.test.ts)
 * @rule anthropic/cached-never-rewritten: A user message with a result that one request alone shows whole (`item`) has its cache mark
 *   before it, at the end of the answer that made the call. (test: test/models/render.test.ts)
 */
import type {
  Base64ImageSource,
  CacheControlEphemeral,
  ContentBlockParam,
  DocumentBlockParam,
  ImageBlockParam,
  MessageCreateParamsStreaming,
  MessageParam,
  TextBlockParam,
  Tool,
  ToolResultBlockParam,
} from '@anthropic-ai/sdk/resources/messages/messages.js';
import type { AssistantBlock, ConversationMessage, MediaSource, ToolResultMessage, UserMessage } from '../../records/message.js';
import { sentSchema } from '../answer-schema.js';
import { toToolSchema } from '../tool-schema.js';
import type { ModelRequest, ToolDescription } from '../model.js';
import { PDF_TYPE, describeRecordings, sentDocument, sentImage, sentText, toolResultText } from '../shown.js';
import { toSentInput, toWellFormed, createWireIds, toWireName } from '../wire.js';

type WireId = (callId: string) => string;
type UserSide = UserMessage | ToolResultMessage;
/** What a user message that we send can have; each of them can carry a cache mark. */
type UserBlock = TextBlockParam | ImageBlockParam | DocumentBlockParam | ToolResultBlockParam;

type ImageType = Base64ImageSource['media_type'];
const IMAGE_TYPES: readonly ImageType[] = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];

const FIVE_MINUTES: CacheControlEphemeral = { type: 'ephemeral' };
/** For a slow conversation. All marks of a request have one lifetime: a longer one may not follow a shorter one. */
const HOUR: CacheControlEphemeral = { type: 'ephemeral', ttl: '1h' };

const NO_TOOLS: ToolDescription = {
  name: 'no_tools',
  description: 'There are no tools in this request.',
  inputSchema: { type: 'object', properties: {} },
};

export function renderRequest(request: ModelRequest): MessageCreateParamsStreaming {
  const schema = sentSchema('anthropic', request)?.schema;
  const mark = request.cachesForHour ? HOUR : FIVE_MINUTES;
  // Blank ones are refused.
  const stopAt = request.stopAt?.filter((text) => text.trim() !== '') ?? [];
  return {
    model: request.model,
    max_tokens: request.maxTokens,
    ...renderSystem(request, mark),
    ...renderTools(request, mark),
    ...(stopAt.length > 0 && { stop_sequences: stopAt }),
    messages: renderMessages(request.messages, mark),
    ...(schema && { output_config: { format: { type: 'json_schema', schema: { ...schema } } } }),
    stream: true,
  };
}

function renderSystem(
  { system, sharedSystem = system.length }: ModelRequest,
  mark: CacheControlEphemeral,
): Pick<MessageCreateParamsStreaming, 'system'> {
  const parts = [system.slice(0, sharedSystem), system.slice(sharedSystem)].map(toWellFormed);
  const blocks = parts.flatMap((text) => (text.trim() === '' ? [] : [{ type: 'text' as const, text, cache_control: mark }]));
  return blocks.length === 0 ? {} : { system: blocks };
}

function renderTools(
  { system, tools, messages, mustCall, oneCall }: ModelRequest,
  mark: CacheControlEphemeral,
): Pick<MessageCreateParamsStreaming, 'tools' | 'tool_choice'> {
  if (tools.length > 0) {
    const described = tools.map((tool, at) => renderTool(tool, system.trim() === '' && at === tools.length - 1 ? mark : undefined));
    const single = oneCall && ({ disable_parallel_tool_use: true } as const);
    if (!mustCall && !oneCall) return { tools: described };
    return { tools: described, tool_choice: { type: mustCall ? 'any' : 'auto', ...single } };
  }
  return messages.some((message) => message.role === 'tool') ? { tools: [renderTool(NO_TOOLS)], tool_choice: { type: 'none' } } : {};
}

function renderTool(tool: ToolDescription, mark?: CacheControlEphemeral): Tool {
  return {
    name: tool.name,
    description: toWellFormed(tool.description),
    input_schema: toToolSchema(tool.inputSchema, 'full') as unknown as Tool.InputSchema,
    ...(mark && { cache_control: mark }),
  };
}

function renderMessages(messages: readonly ConversationMessage[], mark: CacheControlEphemeral): MessageParam[] {
  const wireId = createWireIds();
  const groups = bySpeaker(messages);
  // The end of the message before was the end of the last request: marked again, it is found however much came since
  // (a cache looks back over 20 blocks only, fewer than one batch of tool calls may take).
  const marked = groups
    .flatMap((group, at) => (group.role === 'user' ? [at] : []))
    .slice(-2)
    .map((at) => (groups[at]?.role === 'user' && hasItem(groups[at]) ? at - 1 : at));
  return groups.map((group, at) => {
    const itsMark = marked.includes(at) ? mark : undefined;
    const origin = itsMark ? undefined : aloneIn(group);
    const known = origin && RENDERED.get(origin);
    if (known) return known;
    const rendered: MessageParam =
      group.role === 'assistant'
        ? {
            role: 'assistant',
            content: withMark(
              group.blocks.map((block) => renderBlock(block, wireId)),
              itsMark,
            ),
          }
        : { role: 'user', content: renderUserSide(group.messages, wireId, itsMark) };
    if (origin) RENDERED.set(origin, rendered);
    return rendered;
  });
}

/** By what they were rendered of. A message never changes, and every turn sends the whole of a long conversation. */
const RENDERED = new WeakMap<object, MessageParam>();

/** What it is rendered of, where nothing beside it counts: ids of calls do. */
function aloneIn(group: Group): object | undefined {
  if (group.role === 'assistant') return group.blocks.some(({ kind }) => kind === 'tool-call') ? undefined : group.blocks;
  const [message, ...more] = group.messages;
  return message?.role === 'user' && more.length === 0 ? message : undefined;
}

function hasItem({ messages }: Extract<Group, { role: 'user' }>): boolean {
  return messages.some((message) => message.role === 'tool' && message.item !== undefined);
}

/** (anthropic/cached-never-rewritten) Thinking takes no mark, and an opaque block goes back as it came (anthropic/blocks-as-they-came). */
function withMark(blocks: ContentBlockParam[], mark: CacheControlEphemeral | undefined): ContentBlockParam[] {
  if (!mark) return blocks;
  const last = blocks.findLastIndex(({ type }) => type === 'tool_use' || type === 'text');
  return blocks.map((block, at) =>
    at === last && (block.type === 'tool_use' || block.type === 'text') ? { ...block, cache_control: mark } : block,
  );
}

type Group =
  { readonly role: 'user'; readonly messages: UserSide[] } | { readonly role: 'assistant'; readonly blocks: readonly AssistantBlock[] };

function bySpeaker(messages: readonly ConversationMessage[]): Group[] {
  const groups: Group[] = [];
  for (const message of messages) {
    const last = groups.at(-1);
    if (message.role === 'assistant') groups.push({ role: 'assistant', blocks: message.blocks });
    else if (last?.role === 'user') last.messages.push(message);
    else groups.push({ role: 'user', messages: [message] });
  }
  return groups;
}

function renderUserSide(messages: readonly UserSide[], wireId: WireId, mark: CacheControlEphemeral | undefined): UserBlock[] {
  const results = messages.filter((message) => message.role === 'tool');
  const users = messages.filter((message) => message.role === 'user');
  const blocks: UserBlock[] = [...results.map((result) => renderResult(result, wireId)), ...users.flatMap(renderUser)];
  return mark ? blocks.map((block, at) => (at === blocks.length - 1 ? { ...block, cache_control: mark } : block)) : blocks;
}

function renderResult(result: ToolResultMessage, wireId: WireId): ToolResultBlockParam {
  return {
    type: 'tool_result',
    tool_use_id: wireId(result.callId),
    content: toolResultText(result),
    ...(result.outcome !== 'ok' && { is_error: true }),
  };
}

function renderUser(message: UserMessage): UserBlock[] {
  const text = sentText(message.text);
  const words = [...describeRecordings(message), ...(text === '' ? [] : [text])];
  const { images = [], documents = [] } = message;
  return [...documents.map(renderDocument), ...images.map(renderImage), ...words.map((part) => ({ type: 'text' as const, text: part }))];
}

function renderImage(image: MediaSource): UserBlock {
  const sent = sentImage(image, { types: IMAGE_TYPES, urls: true });
  switch (sent.kind) {
    case 'base64':
      return { type: 'image', source: { type: 'base64', media_type: sent.mediaType as ImageType, data: sent.base64 } };
    case 'url':
      return { type: 'image', source: { type: 'url', url: sent.url } };
    case 'words':
      return { type: 'text', text: sent.text };
    default:
      return sent satisfies never;
  }
}

function renderDocument(document: MediaSource): UserBlock {
  const sent = sentDocument(document, { urls: true });
  switch (sent.kind) {
    case 'base64':
      return { type: 'document', source: { type: 'base64', media_type: PDF_TYPE, data: sent.base64 } };
    case 'url':
      return { type: 'document', source: { type: 'url', url: sent.url } };
    case 'words':
      return { type: 'text', text: sent.text };
    default:
      return sent satisfies never;
  }
}

function renderBlock(block: AssistantBlock, wireId: WireId): ContentBlockParam {
  switch (block.kind) {
    case 'text':
      return { type: 'text', text: sentText(block.text) };
    case 'thinking':
      return { type: 'thinking', thinking: block.text, signature: block.signature ?? '' };
    case 'opaque':
      // The API's block, kept verbatim since the response (anthropic/blocks-as-they-came).
      return block.value as unknown as ContentBlockParam;
    case 'tool-call':
      return { type: 'tool_use', id: wireId(block.callId), name: toWireName(block.name), input: toSentInput(block.input) };
    default:
      return block satisfies never;
  }
}
