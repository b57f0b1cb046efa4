/** The page as a whole: who looks, then the way around, then a view. */
import './shell.css';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { begin, session } from '../session.js';
import { Frame } from './frame.js';
import { SignIn, Unreachable } from './sign-in.js';

export function App(): JSX.Element {
  useEffect(() => void begin(), []);
  switch (session.value.is) {
    case 'asking':
      return <main aria-busy="true" />;
    case 'out':
      return <SignIn provider={session.value.provider} problem={session.value.problem} />;
    case 'unreachable':
      return <Unreachable />;
    case 'in':
      return <Frame />;
  }
}
