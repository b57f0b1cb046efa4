/** A conversation step by step: forwards where it runs, and back and forth through all that it was. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { request } from '../../api/request.js';
import { Pending } from '../../ui/parts.js';
import { useAnswer, useKeys } from '../../ui/hooks.js';
import { Live } from './live.js';
import { Past } from './past.js';
import '../../ui/parts.css';
import './stepper.css';

export default function Stepper({ of }: { readonly of: string }): JSX.Element {
  const [marker, setMarker] = useState(0);
  const { value, error, again } = useAnswer(`conversation ${of}`, (signal) =>
    request('get', '/v1/conversations/{id}', { path: { id: of }, signal }),
  );
  useKeys({ s: () => document.querySelector<HTMLButtonElement>('[data-step]:not(:disabled)')?.click() });
  if (of === '') return <div class="empty">Choose a conversation to step through it.</div>;
  return (
    <div class="pane">
      <div class="view-pad stepper">
        {(value === undefined || error !== undefined) && <Pending error={error} again={again} />}
        {value?.state === 'running' && <Live of={of} onStepped={() => setMarker((before) => before + 1)} />}
        {value !== undefined && value.state !== 'running' && <p class="note">It has ended ({value.state}): its past is all here.</p>}
        {value !== undefined && <Past of={of} marker={marker} />}
      </div>
    </div>
  );
}
