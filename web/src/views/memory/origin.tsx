import type { JSX } from 'preact';
import type { Schema } from '../../api/request.js';
import { conversations, nameConversation } from '../../conversations.js';
import { Link } from '../../ui/parts.js';
import { plainText } from '../../ui/words.js';

/** Where it was learnt: the conversation's turn, opened where it was said. */
export function Origin({ source }: { readonly source: Schema<'LineSource'> | Schema<'Fact'>['source'] }): JSX.Element {
  if (source === null) return <span class="faint">written by hand</span>;
  const { conversation, turn_ids: turns } = source;
  return (
    <>
      {'trust' in source && <span>{plainText(describeTrust(source), 80)}</span>}
      {conversation !== undefined && <SaidIn conversation={conversation} turn={turns?.[0]} />}
    </>
  );
}

export function SaidIn({ conversation, turn }: { readonly conversation: string; readonly turn: string | undefined }): JSX.Element {
  const listed = conversations.value.all.find(({ id }) => id === conversation);
  return (
    <Link view="chat" of={conversation} more={{ turn }} class="said-in">
      <span class="one-line">{nameConversation(conversation, listed)}</span>
      {turn !== undefined && <span class="num">· turn {Number(turn.replace(/^turn_/, ''))}</span>}
    </Link>
  );
}

const CAUSES: Readonly<Record<Schema<'MemoryChange'>['cause'], string>> = {
  consolidation: 'consolidated',
  hand: 'written by hand',
  accepted: 'accepted by a person',
  forgotten: 'forgotten',
  care: 'tidied up',
};

export function describeCause(cause: Schema<'MemoryChange'>['cause']): string {
  return CAUSES[cause];
}

/** Who stands behind a line, or a text that was found. */
export function describeTrust({ trust, tools = [] }: Pick<Schema<'LineSource'>, 'trust' | 'tools'>): string {
  if (trust.startsWith('tool:')) return `from the tool ${trust.slice(5)}`;
  const who = WHO[trust] ?? trust;
  return tools.length === 0 ? who : `${who} after ${tools.join(', ')}`;
}

const WHO: Readonly<Record<string, string>> = {
  user: 'a user said it',
  person: 'a person wrote it',
  model: 'the model concluded it',
  file: 'from a file or a quotation',
  application: 'from the application',
};

/** Neither a person's words nor the model's alone: data, and no instruction. */
export function isUntrusted({ trust, tools = [] }: Pick<Schema<'LineSource'>, 'trust' | 'tools'>): boolean {
  return trust.startsWith('tool:') || trust === 'file' || trust === 'application' || (trust === 'model' && tools.length > 0);
}
