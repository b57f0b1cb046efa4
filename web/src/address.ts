/**
 * Where one is: the address of the page. `?timeline=trip-to-oslo&turn=turn_0004` is the view `timeline` of a conversation, with what the view
 * keeps of its state. In the query, not in the path: the page is then one file at any place behind a proxy, and signing in leads back to it.
 */
import { computed, signal } from '@preact/signals';

export interface Place {
  readonly view: string;
  /** What it is of, a conversation as a rule; empty: of none. */
  readonly of: string;
  readonly more: Readonly<Record<string, string>>;
}

const HOME = 'chat';

/** In the address: one that is about to begin, which takes the place of the list where there is room for one of them. */
export const NEW = { new: '1' } as const;

const search = signal(location.search);
addEventListener('popstate', () => (search.value = location.search));

export const place = computed<Place>(() => readPlace(search.value));

function readPlace(query: string): Place {
  const [[view, of] = [HOME, ''], ...more] = [...new URLSearchParams(query)];
  return { view, of, more: Object.fromEntries(more) };
}

/** As a link has it. What is empty or undefined is left out. */
export function toHref(view: string, of = '', more: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(more).filter((pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== '');
  const query = new URLSearchParams([[view, of], ...given]).toString();
  return `?${query.replace(/^([^=&]*)=(?=&|$)/, '$1')}`;
}

export function go(view: string, of?: string, more?: Readonly<Record<string, string | undefined>>): void {
  show(toHref(view, of, more));
}

export function show(href: string): void {
  if (href === location.search) return;
  history.pushState(null, '', href);
  search.value = location.search;
}

/** Changes what the view keeps in the address. `push`: going back undoes it. */
export function keep(more: Readonly<Record<string, string | undefined>>, { push = false }: { readonly push?: boolean } = {}): void {
  const { view, of, more: kept } = place.value;
  const href = toHref(view, of, { ...kept, ...more });
  if (href === location.search) return;
  if (push) history.pushState(null, '', href);
  else history.replaceState(history.state, '', href);
  search.value = location.search;
}

/** Of the gateway, with a slash at its end: the script lies in `assets/` below it. */
export const home = import.meta.env.DEV ? new URL('/', location.href) : new URL('..', import.meta.url);
