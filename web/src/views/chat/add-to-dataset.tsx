/** A turn as a case of a dataset, in a file of the project that the gateway runs in. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { request } from '../../api/request.js';
import { Icon } from '../../ui/icon.js';
import { describeError, plainText, plural } from '../../ui/words.js';

// A browser reads it as one of its newest expressions, where a hyphen in a class is escaped.
const NAME = '[A-Za-z0-9][A-Za-z0-9._\\-]{0,63}';
const DEFAULT_NAME = 'cases';

/** One click, and Enter: it goes into `cases`, unless another name is typed. */
export function AddToDataset({ id, turn }: { readonly id: string; readonly turn: string }): JSX.Element {
  const isOpen = useSignal(false);
  const busy = useSignal(false);
  const form = useRef<HTMLFormElement>(null);
  const told = useSignal<{ readonly text: string; readonly isProblem: boolean } | undefined>(undefined);
  useEffect(() => form.current?.querySelector('input')?.focus(), [isOpen.value]);
  const add = async (filled: HTMLFormElement): Promise<void> => {
    const given = new FormData(filled);
    const name = given.get('name')?.toString().trim() || DEFAULT_NAME;
    const label = given.get('label')?.toString().trim() ?? '';
    busy.value = true;
    told.value = undefined;
    try {
      const added = await request('post', '/v1/conversations/{id}/turns/{turn}/dataset', {
        path: { id, turn },
        body: { name, ...(label !== '' && { label }) },
      });
      const where = `dataset ${plainText(added.name, 64)} (${plural(added.cases, 'case')})`;
      told.value = { text: added.isNew ? `Added to ${where}` : `In ${where} already`, isProblem: false };
      isOpen.value = false;
    } catch (error) {
      told.value = { text: describeError(error), isProblem: true };
    } finally {
      busy.value = false;
    }
  };
  return (
    <>
      <button
        type="button"
        class="button bare tight"
        aria-expanded={isOpen.value}
        onClick={() => (isOpen.value = !isOpen.value)}
        title="As a case that evals are run on: a file of the project"
      >
        <Icon name="plus" size={15} />
        Add to dataset
      </button>
      {isOpen.value && (
        <form
          ref={form}
          class="row dataset-form"
          onSubmit={(event) => {
            event.preventDefault();
            void add(event.currentTarget);
          }}
          onKeyDown={(event) => {
            if (event.key === 'Escape') isOpen.value = false;
          }}
        >
          <input class="field" name="name" aria-label="Dataset" defaultValue={DEFAULT_NAME} pattern={NAME} maxLength={64} required />
          <input class="field" name="label" aria-label="Label" placeholder="Label, such as good" pattern={NAME} maxLength={64} />
          <button type="submit" class="button tight main" disabled={busy.value}>
            Add
          </button>
        </form>
      )}
      {told.value !== undefined && (
        <span class={`small dataset-told ${told.value.isProblem ? 'is-bad' : 'quiet'}`} role={told.value.isProblem ? 'alert' : 'status'}>
          {plainText(told.value.text, 400)}
        </span>
      )}
    </>
  );
}
