import type { JSX } from 'preact';
import { plainCode } from './plain-text.js';
import { bytes } from './words.js';

const MAX_SHOWN = 60_000;

/** Text of a program, as it is; of a very long one its beginning. */
export function Code({ text }: { readonly text: string }): JSX.Element {
  const isCut = text.length > MAX_SHOWN;
  return (
    <>
      <pre class="code" tabIndex={0} dir="ltr">
        {plainCode(isCut ? text.slice(0, MAX_SHOWN) : text)}
      </pre>
      {isCut && (
        <p class="small faint">
          The first {bytes(MAX_SHOWN)} of {bytes(text.length)}.
        </p>
      )}
    </>
  );
}
