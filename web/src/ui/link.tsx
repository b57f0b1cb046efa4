/** A link within the page: an address that can be opened elsewhere, followed here without loading anew. */
import type { ComponentChildren, JSX } from 'preact';
import { toHref, show } from '../address.js';

export interface LinkProps {
  readonly view: string;
  readonly of?: string;
  readonly more?: Readonly<Record<string, string | undefined>>;
  readonly class?: string;
  readonly current?: boolean;
  readonly label?: string;
  readonly children: ComponentChildren;
}

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
