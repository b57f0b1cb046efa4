/** The Messages API's request as it stands on the wire, as far as tests and the offline model read it. */

export interface TextBlock {
  readonly type: 'text';
  readonly text: string;
}

export interface ToolUseBlock {
  readonly type: 'tool_use';
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

export interface ToolResultBlock {
  readonly type: 'tool_result';
  readonly tool_use_id: string;
  readonly content?: string | readonly ApiBlock[];
  readonly is_error?: boolean;
}

export interface ThinkingBlock {
  readonly type: 'thinking';
  readonly thinking: string;
  readonly signature: string;
}

export interface OtherBlock {
  readonly type: 'image' | 'document' | 'redacted_thinking';
  readonly [field: string]: unknown;
}

export type ApiBlock = TextBlock | ToolUseBlock | ToolResultBlock | ThinkingBlock | OtherBlock;

export interface ApiMessage {
  readonly role: 'user' | 'assistant';
  readonly content: string | readonly ApiBlock[];
}

export interface ApiTool {
  readonly name: string;
  readonly description?: string;
  readonly input_schema: unknown;
}

export interface ApiRequest {
  readonly model: string;
  readonly max_tokens: number;
  readonly messages: readonly ApiMessage[];
  readonly system?: string | readonly TextBlock[];
  readonly tools?: readonly ApiTool[];
  readonly stream?: boolean;
  readonly [field: string]: unknown;
}

/** A message's content as blocks, however it was written. */
export function blocksOf(content: ApiMessage['content'] | ToolResultBlock['content']): readonly ApiBlock[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []);
}

export function textOf(content: ApiMessage['content'] | ToolResultBlock['content']): string {
  return blocksOf(content)
    .flatMap((block) => (block.type === 'text' ? [block.text] : []))
    .join('\n');
}

export function systemText(request: ApiRequest): string {
  return textOf(request.system);
}

/** All text of the last user message. */
export function lastUserText(request: ApiRequest): string {
  return withoutDay(textOf(request.messages.findLast((message) => message.role === 'user')?.content));
}

/** What a person wrote, without the date that the first message of another day gets: a test may run past midnight. */
export function withoutDay(text: string): string {
  return text.replace(/^\[\d{4}-\d\d-\d\d, UTC\]\n/, '');
}

/** The tool results that the last message brings. */
export function lastToolResults(request: ApiRequest): readonly ToolResultBlock[] {
  return blocksOf(request.messages.at(-1)?.content).filter((block) => block.type === 'tool_result');
}
