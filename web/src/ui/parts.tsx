/** What views share: links, problems, and the parts of a view. */
import type { ComponentChildren, JSX } from 'preact';
import { toHref, show } from '../address.js';
import { Icon } from './icon.js';
import { describeError } from './words.js';
import { useEffect, useRef } from 'preact/hooks';
import './parts.css';

interface LinkProps {
  readonly view: string;
  readonly of?: string;
  readonly more?: Readonly<Record<string, string | undefined>>;
  readonly class?: string;
  readonly current?: boolean;
  readonly label?: string;
  readonly children: ComponentChildren;
}

/** A link within the page: an address that can be opened elsewhere, followed here without loading anew. */
export function Link({ view, of, more, class: kind, current = false, label, children }: LinkProps): JSX.Element {
  const href = toHref(view, of, more);
  return (
    <a
      href={href}
      class={kind}
      aria-label={label}
      aria-current={current ? 'page' : undefined}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0) return;
        event.preventDefault();
        show(href);
      }}
    >
      {children}
    </a>
  );
}

/** What went wrong, in the gateway's words, with a way on. */
export function Problem({ error, again }: { readonly error: unknown; readonly again?: () => void }): JSX.Element {
  return (
    <div class="note bad" role="alert">
      <Icon name="warn" size={15} />
      <span>{describeError(error)}</span>
      {again !== undefined && (
        <button type="button" class="button bare tight" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

/** In the place of an answer that has not come. Its words are seen only where that takes a while. */
export function Pending({ error, again }: { readonly error?: unknown; readonly again?: () => void }): JSX.Element {
  if (error !== undefined) return <Problem error={error} {...(again && { again })} />;
  return (
    <div class="empty" aria-busy="true">
      <p class="soon small faint" role="status">
        Loading …
      </p>
    </div>
  );
}

interface Part {
  readonly name: string;
  readonly title: string;
  readonly count?: number;
}

interface PartsProps {
  readonly label: string;
  readonly parts: readonly Part[];
  readonly shown: string;
  readonly onShow: (name: string) => void;
}

/** Parts of a view, one of which is shown; which one, the address has. Arrow keys move between them. */
export function Parts({ label, parts, shown, onShow }: PartsProps): JSX.Element {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // Of many in little room: the one that is shown.
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [shown]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const at = parts.findIndex(({ name }) => name === shown);
    const next = (at + step + parts.length) % parts.length;
    onShow(parts[next]?.name ?? shown);
    list.current?.querySelectorAll<HTMLElement>('[role=tab]')[next]?.focus();
  };
  return (
    <div class="parts" role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
      {parts.map(({ name, title, count }) => (
        <button
          key={name}
          type="button"
          role="tab"
          class="part"
          aria-selected={name === shown}
          tabIndex={name === shown ? 0 : -1}
          onClick={() => onShow(name)}
        >
          {title}
          {count !== undefined && count > 0 && <span class="part-count num">{count}</span>}
        </button>
      ))}
    </div>
  );
}
