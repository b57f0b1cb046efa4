import type { JSX } from 'preact';
import { conversations } from '../../conversations.js';
import { nameOf } from '../../shell/of-conversation.js';
import { Link } from '../../ui/link.js';
import { plainText } from '../../ui/plain-text.js';
import type { Source } from './shapes.js';
import { trustInWords } from './shapes.js';

/** Where it was learnt: the conversation's turn, opened where it was said. */
export function Origin({ source }: { readonly source: Source | null }): JSX.Element {
  if (source === null) return <span class="faint">written by hand</span>;
  const { conversation, turn_ids: turns } = source;
  return (
    <>
      {(source.trust as string | undefined) !== undefined && <span>{plainText(trustInWords(source), 80)}</span>}
      {conversation !== undefined && <SaidIn conversation={conversation} turn={turns?.[0]} />}
    </>
  );
}

export function SaidIn({ conversation, turn }: { readonly conversation: string; readonly turn: string | undefined }): JSX.Element {
  const listed = conversations.value.all.find(({ id }) => id === conversation);
  return (
    <Link view="chat" of={conversation} more={{ turn }} class="said-in">
      <span class="one-line">{nameOf(conversation, listed)}</span>
      {turn !== undefined && <span class="num">· turn {Number(turn.replace(/^turn_/, ''))}</span>}
    </Link>
  );
}
