/** What went wrong, in the gateway's words, with a way on. */
import type { JSX } from 'preact';
import { Icon } from './icon.js';
import { describeError } from './words.js';

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
