/** The list of conversations, and one of them with the views that there are of it. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { go, place } from '../address.js';
import { request } from '../api/request.js';
import { conversations, keepListed, nameConversation, readFork, refreshList, type Listed } from '../conversations.js';
import { mayAct } from '../session.js';
import { Icon } from '../ui/icon.js';
import { Link } from '../ui/parts.js';
import { plainText } from '../ui/words.js';
import { useAnswer } from '../ui/hooks.js';
import { views, type View } from '../views/table.js';
import { SideList } from './side-list.js';
import { heading } from './title.js';

interface OfConversationProps {
  readonly shown: View;
  readonly of: string;
  readonly children: ComponentChildren;
}

export function OfConversation({ shown, of, children }: OfConversationProps): JSX.Element {
  useEffect(keepListed, []);
  const one = conversations.value.all.find(({ id }) => id === of);
  useEffect(() => {
    if (of !== '' && one === undefined) void refreshList();
  }, [of]);
  const title = nameConversation(of, one);
  useEffect(() => {
    heading.value = of === '' ? '' : title;
  }, [of, title]);
  const isBeginning = of === '' && 'new' in place.value.more;
  return (
    <div class={`of-conversation${of === '' && !isBeginning ? '' : ' has-one'}`}>
      <SideList view={shown.name} of={of} />
      <div class="conversation" tabIndex={-1} data-content="">
        {of === '' ? (
          <div>
            <Back view={shown.name} />
          </div>
        ) : (
          <Head shown={shown} of={of} title={title} one={one} />
        )}
        {children}
      </div>
    </div>
  );
}

/** To the list, where it has made room. */
function Back({ view }: { readonly view: string }): JSX.Element {
  return (
    <button type="button" class="button bare square only-narrow" aria-label="All conversations" onClick={() => go(view)}>
      <Icon name="back" />
    </button>
  );
}

/** From which conversation's turns it went on. */
function Origin({ of }: { readonly of: string }): JSX.Element | null {
  const { value } = useAnswer(`about ${of}`, (signal) => request('get', '/v1/conversations/{id}', { path: { id: of }, signal }));
  const origin = readFork(value);
  if (origin === undefined || origin.conversation === of) return null;
  const from = conversations.value.all.find(({ id }) => id === origin.conversation);
  return (
    <>
      fork of{' '}
      <Link view="chat" of={origin.conversation} more={{ turn: origin.turn }}>
        {nameConversation(origin.conversation, from)}
      </Link>
      {origin.turn !== undefined && ` at turn ${Number(origin.turn.replace(/^turn_/, ''))}`} ·{' '}
    </>
  );
}

/** Of a sub-agent, whose id is its parent's with the turn and the call: back to where it was asked. */
function Parent({ of }: { readonly of: string }): JSX.Element | null {
  const [, parent, turn] = /^(.+):(turn_\d+):\d+$/.exec(of) ?? [];
  if (parent === undefined) return null;
  const known = conversations.value.all.find(({ id }) => id === parent);
  return (
    <>
      sub-agent of{' '}
      <Link view="chat" of={parent} more={{ turn }}>
        {nameConversation(parent, known)}
      </Link>{' '}
      ·{' '}
    </>
  );
}

interface HeadProps extends Omit<OfConversationProps, 'children'> {
  readonly title: string;
  readonly one: Listed | undefined;
}

function Head({ shown, of, title, one }: HeadProps): JSX.Element {
  const tabs = views.filter(({ isOfConversation, role = 'user' }) => isOfConversation && mayAct(role));
  return (
    <header class="conversation-head">
      <Back view={shown.name} />
      <div class="names">
        <h1 class="one-line" title={title}>
          {title}
        </h1>
        <p class="one-line">
          <Parent of={of} />
          {one !== undefined && <Origin of={of} />}
          {[one?.agent, of === title ? undefined : of]
            .filter((part) => part !== null && part !== undefined)
            .map((part) => plainText(part, 80))
            .join(' · ')}
        </p>
      </div>
      {tabs.length > 1 && (
        <nav class="tabs" aria-label="Views of this conversation">
          {tabs.map(({ name, title: label }) => (
            <Link key={name} view={name} of={of} class="tab" current={name === shown.name}>
              {label}
            </Link>
          ))}
        </nav>
      )}
    </header>
  );
}
