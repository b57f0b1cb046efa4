/** The page as a whole: who looks, then the way around, then a view. */
import './shell.css';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { begin, session, signInAddress } from '../session.js';
import { Mark } from '../ui/icon.js';
import { Pending } from '../ui/parts.js';
import { Frame } from './frame.js';

export function App(): JSX.Element {
  useEffect(() => void begin(), []);
  switch (session.value.is) {
    case 'asking':
      return (
        <main>
          <Pending />
        </main>
      );
    case 'out':
      return <SignIn provider={session.value.provider} problem={session.value.problem} />;
    case 'unreachable':
      return <Unreachable problem={session.value.problem} />;
    case 'in':
      return <Frame />;
  }
}

function SignIn({ provider, problem }: { readonly provider: boolean; readonly problem?: string }): JSX.Element {
  return (
    <main class="sign-in">
      <div>
        <span class="mark">
          <Mark size={36} />
        </span>
        <h1>Sign in to Perdura</h1>
        {problem !== undefined && (
          <p class="note warn" role="alert">
            {problem}
          </p>
        )}
        {provider && (
          <a class="button main" href={signInAddress()}>
            Sign in
          </a>
        )}
        <p class="quiet">{provider ? 'Or open' : 'Open'} the link that this command prints. It opens once, within a minute:</p>
        <pre>perdura admin token link</pre>
      </div>
    </main>
  );
}

function Unreachable({ problem }: { readonly problem?: string }): JSX.Element {
  return (
    <main class="sign-in">
      <div>
        <h1>The gateway {problem === undefined ? 'does not answer' : 'cannot do this now'}</h1>
        {problem !== undefined && (
          <p class="note warn" role="alert">
            {problem}
          </p>
        )}
        <p class="quiet">
          Conversations go on without it. Look whether `perdura serve` runs{problem !== undefined && ', and at its log'}, then try again.
        </p>
        <button type="button" class="button main" onClick={() => void begin()}>
          Try again
        </button>
      </div>
    </main>
  );
}
