/** Parts of a view, one of which is shown; which one, the address has. Arrow keys move between them. */
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import './parts.css';

export interface Part {
  readonly name: string;
  readonly title: string;
  readonly count?: number;
}

export interface PartsProps {
  readonly label: string;
  readonly parts: readonly Part[];
  readonly shown: string;
  readonly onShow: (name: string) => void;
}

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
