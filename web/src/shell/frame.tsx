/** The rail, the view, and what is said above all views: that one is offline. */
import { Component, type ComponentChildren, type JSX } from 'preact';
import { useSignal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { go, place } from '../address.js';
import { connection, keepConnected } from '../api/connection.js';
import { isReachable } from '../api/request.js';
import { mayAct, session, signOut } from '../session.js';
import { Icon, Mark } from '../ui/icon.js';
import { Link, Pending, Problem } from '../ui/parts.js';
import { useKeys } from '../ui/hooks.js';
import { loadView, views, type View, type ViewModule } from '../views/table.js';
import { keepWaiting, waiting } from '../waiting.js';
import { nextTheme, theme } from '../ui/theme.js';
import { OfConversation } from './of-conversation.js';
import { Palette } from './palette.js';
import { useTitle } from './title.js';

/** Where the way around ends: what is skipped to. */
const CONTENT = { tabIndex: -1, 'data-content': '' } as const;

export function Frame(): JSX.Element {
  useEffect(keepConnected, []);
  useEffect(keepWaiting, []);
  useTitle();
  const { view, of } = place.value;
  useKeys({ '/': () => toSearch(view, of) });
  const isChoosing = useSignal(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
      event.preventDefault();
      isChoosing.value = !isChoosing.value;
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  const shown = views.find(({ name }) => name === view) ?? views[0];
  if (shown === undefined) return <main />;
  const slot = <ViewSlot name={shown.name} of={of} />;
  return (
    <div class="frame">
      <button type="button" class="button skip" onClick={() => document.querySelector<HTMLElement>('[data-content]')?.focus()}>
        To the content
      </button>
      <Rail shown={shown} choose={() => (isChoosing.value = true)} />
      {isChoosing.value && <Palette close={() => (isChoosing.value = false)} />}
      <div class="stage">
        {(connection.value === 'lost' || !isReachable.value) && (
          <p class="offline" role="status">
            <Icon name="warn" size={15} />
            Offline. Conversations go on without this page, and it goes on by itself.
          </p>
        )}
        <main class="view" {...(!shown.isOfConversation && CONTENT)}>
          {shown.isOfConversation ? (
            <OfConversation shown={shown} of={of}>
              {slot}
            </OfConversation>
          ) : (
            slot
          )}
        </main>
      </div>
    </div>
  );
}

/** The field of what is shown, else the search of everything. */
function toSearch(view: string, of: string): void {
  const shown = (): HTMLInputElement | undefined =>
    [...document.querySelectorAll<HTMLInputElement>('[data-search]')].find((field) => field.checkVisibility());
  if (shown() === undefined && mayAct('operator')) go('memory', view === 'memory' ? of : '', { part: 'search' });
  // A view that is shown for the first time has to be loaded.
  const tries = setInterval(() => {
    const field = shown();
    field?.focus();
    field?.select();
    if (field !== undefined) clearInterval(tries);
  }, 30);
  setTimeout(() => clearInterval(tries), 3_000);
}

function Rail({ shown, choose }: { readonly shown: View; readonly choose: () => void }): JSX.Element {
  const all = views.filter(({ name, isOfConversation, role = 'user' }) => (name === 'chat' || !isOfConversation) && mayAct(role));
  const count = waiting.value.all.length;
  const who = session.value.is === 'in' ? session.value.me.name : '';
  return (
    <nav class="rail" aria-label="Views">
      <span class="mark">
        <Mark />
      </span>
      {all.map(({ name, title, icon, isOfConversation }) => (
        <Link key={name} view={name} class="rail-link" current={shown.name === name || (isOfConversation && shown.isOfConversation)}>
          <Icon name={icon} size={20} />
          {title}
          {name === 'inbox' && count > 0 && (
            <span class="badge">
              {count}
              <span class="unseen"> waiting</span>
            </span>
          )}
        </Link>
      ))}
      <span class="space" />
      <button type="button" class="rail-link" aria-keyshortcuts="Control+K Meta+K" title="Go to anything: Ctrl+K" onClick={choose}>
        <Icon name="search" size={20} />
        Go to
      </button>
      <button type="button" class="rail-link rail-theme" title={`Theme: ${theme.value}`} onClick={nextTheme}>
        <Icon name="theme" size={20} />
        {theme.value === 'system' ? 'Theme' : theme.value === 'dark' ? 'Dark' : 'Light'}
      </button>
      <button type="button" class="rail-link" title={`Signed in as ${who}`} onClick={() => void signOut()}>
        <Icon name="out" size={20} />
        Sign out
      </button>
    </nav>
  );
}

/** A view, loaded when it is first shown. What it throws stays in its place. */
function ViewSlot({ name, of }: { readonly name: string; readonly of: string }): JSX.Element {
  const [loaded, setLoaded] = useState<{ readonly name: string; readonly module?: ViewModule; readonly error?: unknown }>({ name });
  const [tries, setTries] = useState(0);
  useEffect(() => {
    let isLeft = false;
    loadView(name).then(
      (module) => !isLeft && setLoaded({ name, module }),
      (error: unknown) => !isLeft && setLoaded({ name, error }),
    );
    return () => void (isLeft = true);
  }, [name, tries]);
  if (loaded.name !== name) return <Pending />;
  if (loaded.error !== undefined) return <Problem error={loaded.error} again={() => setTries(tries + 1)} />;
  if (loaded.module === undefined) return <Pending />;
  const Shown = loaded.module.default;
  return (
    <Guard key={`${name} ${of}`}>
      <Shown of={of} />
    </Guard>
  );
}

class Guard extends Component<{ readonly children: ComponentChildren }, { readonly error?: unknown }> {
  override state: { readonly error?: unknown } = {};

  override componentDidCatch(error: unknown): void {
    this.setState({ error });
  }

  render(): ComponentChildren {
    if (this.state.error === undefined) return this.props.children;
    return (
      <div class="view-pad">
        <Problem error={this.state.error} again={() => this.setState({ error: undefined })} />
      </div>
    );
  }
}
