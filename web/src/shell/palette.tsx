/** Ctrl+K: to any view and any conversation, by a few letters. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { NEW, place, show, toHref } from '../address.js';
import { conversations, listMore, nameConversation } from '../conversations.js';
import { mayAct } from '../session.js';
import { nextTheme, theme } from '../ui/theme.js';
import { plainText } from '../ui/words.js';
import { views } from '../views/table.js';
import './palette.css';

interface Choice {
  readonly key: string;
  readonly words: string;
  /** Beside the words. */
  readonly what: string;
  readonly act: () => void;
}

const MOST = 12;

export function Palette({ close }: { readonly close: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const wanted = useSignal('');
  const at = useSignal(0);
  // Before anything is painted: keys that follow at once are for it.
  useLayoutEffect(() => {
    dialog.current?.showModal();
    listMore(500);
  }, []);
  const found = choicesFor(wanted.value);
  const chosen = Math.min(at.value, found.length - 1);
  const take = (choice: Choice | undefined): void => {
    if (choice === undefined) return;
    close();
    choice.act();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) at.value = (chosen + step + found.length) % Math.max(1, found.length);
    else if (event.key === 'Enter') take(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog class="palette" aria-label="Go to" ref={dialog} onClose={close} onClick={(event) => event.target === dialog.current && close()}>
      <input
        class="field"
        type="search"
        role="combobox"
        list={undefined}
        aria-label="Go to a view or a conversation"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={chosen >= 0 ? `palette-${chosen}` : undefined}
        placeholder="Go to …"
        value={wanted.value}
        onInput={(event) => {
          wanted.value = event.currentTarget.value;
          at.value = 0;
        }}
        onKeyDown={onKeyDown}
      />
      <ul id="palette-list" role="listbox" aria-label="Where to">
        {found.map((choice, number) => (
          <li
            key={choice.key}
            id={`palette-${number}`}
            role="option"
            aria-selected={number === chosen}
            onPointerMove={() => (at.value = number)}
            onClick={() => take(choice)}
          >
            <span class="one-line">{choice.words}</span>
            <span class="faint small">{choice.what}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="faint small">Nothing fits.</p>}
    </dialog>
  );
}

/** Views first, then conversations, the newest first; last what can always be done with the words. */
function choicesFor(wanted: string): readonly Choice[] {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (text: string): boolean => words.every((word) => text.toLowerCase().includes(word));
  const { of } = place.value;
  const isConversation = views.some(({ name, isOfConversation }) => isOfConversation && name === place.value.view);
  const ofViews = views
    .filter(({ isOfConversation, role = 'user' }) => mayAct(role) && (!isOfConversation || (isConversation && of !== '')))
    .map(({ name, title, isOfConversation }): Choice => {
      const href = toHref(name, isOfConversation ? of : '');
      return { key: `view ${name}`, words: title, what: isOfConversation ? 'of this conversation' : 'view', act: () => show(href) };
    });
  const others: readonly Choice[] = [
    { key: 'new', words: 'New conversation', what: 'begin', act: () => show(toHref('chat', '', NEW)) },
    { key: 'theme', words: 'Theme', what: `now: ${theme.value}`, act: nextTheme },
  ];
  const ofConversations = conversations.value.all
    .filter((one) => fits(`${one.title ?? ''} ${one.id} ${one.agent ?? ''}`))
    .map((one): Choice => {
      const what = plainText(one.agent ?? 'conversation', 40);
      return { key: one.id, words: nameConversation(one.id, one), what, act: () => show(toHref('chat', one.id)) };
    });
  const question = wanted.trim().slice(0, 500);
  const search: Choice = {
    key: 'search',
    words: `Search all that was said for “${plainText(question, 60)}”`,
    what: 'memory',
    act: () => show(toHref('memory', '', { part: 'search', question })),
  };
  const shown = [...[...ofViews, ...others].filter((one) => fits(one.words)), ...ofConversations].slice(0, MOST);
  return question !== '' && mayAct('operator') ? [...shown, search] : shown;
}
