/** To forget: what it would take out is shown first, and nothing happens without a second word. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { request, type Answer } from '../../api/request.js';
import { plainText, describeError, plural } from '../../ui/words.js';

type Preview = Answer<'post', '/v1/memory/{scope}/forget/preview'>;

export function Forget({ scope, onForgotten }: { readonly scope: string; readonly onForgotten: () => void }): JSX.Element {
  const text = useSignal('');
  const preview = useSignal<{ readonly of: string; readonly found: Preview } | undefined>(undefined);
  const busy = useSignal(false);
  const failure = useSignal<unknown>(undefined);
  const done = useSignal('');
  const work = async (act: () => Promise<void>): Promise<void> => {
    busy.value = true;
    failure.value = undefined;
    try {
      await act();
    } catch (error) {
      failure.value = error;
    } finally {
      busy.value = false;
    }
  };
  const look = (): Promise<void> =>
    work(async () => {
      const of = text.value;
      done.value = '';
      preview.value = { of, found: await request('post', '/v1/memory/{scope}/forget/preview', { path: { scope }, body: { text: of } }) };
    });
  const forget = (): Promise<void> =>
    work(async () => {
      const { of } = preview.value ?? { of: '' };
      await request('post', '/v1/memory/{scope}/forget', { path: { scope }, body: { text: of } });
      done.value = `Forgotten: “${plainText(of, 120)}”. It does not come in again unless it is said anew.`;
      preview.value = undefined;
      text.value = '';
      onForgotten();
    });
  const found = preview.value?.found;
  const { facts = [], proposals = [] } = found ?? {};
  const all = found === undefined ? 0 : found.lines.length + facts.length + proposals.length + found.historyLines;
  return (
    <>
      <p class="quiet small">
        Every line and fact that says this goes, from earlier versions too. What was said stays in the conversations themselves, until their
        retention has passed.
      </p>
      <form
        class="forget-form"
        onSubmit={(event) => {
          event.preventDefault();
          void look();
        }}
      >
        <textarea
          class="field"
          rows={2}
          maxLength={10_000}
          aria-label="What is to be forgotten"
          placeholder="Lives in Oslo"
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
            preview.value = undefined;
          }}
        />
        <button type="submit" class="button" disabled={busy.value || text.value.trim() === ''}>
          Show what would go
        </button>
      </form>
      {failure.value !== undefined && <p class="note bad">{describeError(failure.value)}</p>}
      {done.value !== '' && (
        <p class="note" role="status">
          {done.value}
        </p>
      )}
      {found !== undefined && (
        <section class="forget-preview" aria-label="What would go">
          {all === 0 ? (
            <p class="quiet">Nothing says this now. Forgotten, it cannot come in later either.</p>
          ) : (
            <ul>
              {found.lines.map((line) => (
                <li key={line}>
                  <span class="pill">MEMORY.md</span> {plainText(line, 400)}
                </li>
              ))}
              {facts.map(({ id, fact }) => (
                <li key={id}>
                  <span class="pill">fact</span> {plainText(fact, 400)}
                </li>
              ))}
              {proposals.map(({ id, line }) => (
                <li key={id}>
                  <span class="pill">proposal</span> {plainText(line, 400)}
                </li>
              ))}
              {found.historyLines > 0 && (
                <li>
                  <span class="pill">HISTORY</span> {plural(found.historyLines, 'line')}
                </li>
              )}
            </ul>
          )}
          <p class="row">
            <button type="button" class="button bad" disabled={busy.value} onClick={() => void forget()}>
              {all === 0 ? 'Keep it from coming in' : 'Forget this for good'}
            </button>
            <button type="button" class="button bare" onClick={() => (preview.value = undefined)}>
              Leave it
            </button>
          </p>
        </section>
      )}
    </>
  );
}
