import type { JSX } from 'preact';
import { Link } from '../../ui/link.js';
import { plainText } from '../../ui/plain-text.js';
import type { Source } from './shapes.js';
import { trustInWords } from './shapes.js';

/** Where it was learnt: the conversation's turn, opened where it was said. */
export function Origin({ source }: { readonly source: Source | null }): JSX.Element {
  if (source === null) return <span class="faint">written by hand</span>;
  const { conversation, turn_ids: turns } = source;
  const [turn] = turns ?? [];
  return (
    <>
      {(source.trust as string | undefined) !== undefined && <span>{plainText(trustInWords(source), 80)}</span>}
      {conversation !== undefined && (
        <Link view="chat" of={conversation} more={{ turn }} class="one-line">
          {plainText(conversation, 40)}
          {turn !== undefined && `, turn ${Number(turn.replace(/^turn_/, ''))}`}
        </Link>
      )}
    </>
  );
}
