/** What sub-agents say and do while a turn waits for them; afterwards their results say it. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import { openConversation, type Opened } from '../../conversation/open.js';
import type { TurnPart } from '../../../../src/records/turn-view.js';
import { gatherWords, parsedJson } from '../../ui/code.js';
import { Markdown } from '../../ui/markdown.js';
import { Link } from '../../ui/parts.js';
import { plainLines, plainText } from '../../ui/words.js';

/** A browser keeps six connections to a server at most: these, the conversation's own, and two for requests. */
const MOST = 3;
const ASK_AGAIN_MS = 1_000;
/** Of all that it did: what it does now. */
const SHOWN = 4;

export function SubAgents({ opened }: { readonly opened: Opened }): JSX.Element {
  const { subAgents = [] } = opened.about.value?.status ?? {};
  return (
    <>
      {subAgents.slice(0, MOST).map(({ conversation }) => (
        <SubAgent key={conversation} id={conversation} />
      ))}
    </>
  );
}

function SubAgent({ id }: { readonly id: string }): JSX.Element | null {
  const tries = useSignal(0);
  const opened = useMemo(() => openConversation(id), [id, tries.value]);
  useEffect(() => () => opened.close(), [opened]);
  const state = opened.state.value;
  useEffect(() => {
    // It is begun a moment after its call.
    if (state !== 'missing' && state !== 'failed') return;
    const timer = setTimeout(() => (tries.value += 1), ASK_AGAIN_MS);
    return () => clearTimeout(timer);
  }, [state, opened]);
  const parts = opened.running.value?.parts ?? [];
  if (parts.length === 0) return null;
  return (
    <section class="sub-agent" aria-label="What the sub-agent does">
      {parts.slice(-SHOWN).map((part) => (
        <Part key={part.kind === 'call' ? part.callId : part.id} part={part} />
      ))}
      <Link view="chat" of={id}>
        Its conversation
      </Link>
    </section>
  );
}

function Part({ part }: { readonly part: TurnPart }): JSX.Element {
  switch (part.kind) {
    case 'text':
      return <Markdown text={part.text} />;
    case 'call': {
      const input = parsedJson(part.input);
      return (
        <p class="small one-line">
          <span class="mono">{plainText(part.name, 80)}</span>{' '}
          <span class="faint">{plainText(input === undefined ? part.input : gatherWords(input.value), 160)}</span>
        </p>
      );
    }
    default:
      return <p class="small faint words">{plainLines(part.text)}</p>;
  }
}
