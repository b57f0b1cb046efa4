import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';

export interface EditWordsProps {
  readonly text: string;
  readonly onSave: (text: string) => void;
  readonly onLeave: () => void;
}

export function EditWords({ text, onSave, onLeave }: EditWordsProps): JSX.Element {
  const words = useSignal(text);
  return (
    <form
      class="edit-words"
      onSubmit={(event) => {
        event.preventDefault();
        if (words.value.trim() !== '') onSave(words.value);
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape') onLeave();
      }}
    >
      <textarea
        class="field"
        aria-label="Say this instead"
        rows={Math.min(12, words.value.split('\n').length + 1)}
        value={words.value}
        dir="auto"
        ref={(element) => element?.focus()}
        onInput={(event) => (words.value = event.currentTarget.value)}
      />
      <p class="small faint">This turn and all after it become a branch, which can be looked at and forked.</p>
      <div class="row">
        <button type="submit" class="button main">
          Say this instead
        </button>
        <button type="button" class="button" onClick={onLeave}>
          Leave it
        </button>
      </div>
    </form>
  );
}
