/** What is recorded of a conversation, as the gateway sends it with long texts at hand. */

export type Body = string | { readonly ref: string; readonly preview: string; readonly bytes: number };
export type Media =
  | { readonly mediaType: string; readonly url: string }
  | { readonly mediaType: string; readonly base64: string }
  | { readonly mediaType: string; readonly ref: string };

export type NamedMedia = Media & { readonly name?: string };

export type AssistantBlock =
  | { readonly kind: 'text'; readonly text: Body }
  | { readonly kind: 'thinking'; readonly text: string }
  | { readonly kind: 'opaque' }
  | {
      readonly kind: 'tool-call';
      readonly callId: string;
      readonly name: string;
      readonly input: unknown;
      readonly inputRef?: Exclude<Body, string>;
    };

export type Said =
  | {
      readonly role: 'user';
      readonly text: Body;
      readonly from?: 'notice' | 'app';
      readonly images?: readonly Media[];
      readonly audio?: readonly Media[];
      readonly video?: readonly Media[];
      readonly documents?: readonly NamedMedia[];
    }
  | { readonly role: 'assistant'; readonly blocks: readonly AssistantBlock[]; readonly model: string; readonly stop: string }
  | { readonly role: 'tool'; readonly callId: string; readonly name: string; readonly outcome: string; readonly text: Body };

export interface Entry {
  readonly slot: number;
  readonly session: number;
  readonly turn: string;
  readonly seq: number;
  /** Seconds since 1970. */
  readonly ts: number;
  readonly message: Said;
  readonly messageId?: string;
}

export function textOf(body: Body): string {
  return typeof body === 'string' ? body : `${body.preview}…`;
}
