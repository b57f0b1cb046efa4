/** One chunk, whole: piece by piece where it is long. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { request } from '../../api/request.js';
import { plainLines, count } from '../../ui/words.js';
import { Problem } from '../../ui/parts.js';

interface Read {
  readonly of: string;
  readonly text: string;
  readonly next: number | null;
  readonly characters: number;
  readonly error?: unknown;
}

export function Reader({ of, chunk }: { readonly of: string; readonly chunk: string }): JSX.Element {
  const key = `${of} ${chunk}`;
  const [read, setRead] = useState<Read>();
  const load = async (offset: number, before: string, signal?: AbortSignal): Promise<void> => {
    try {
      const { text, next, characters } = await request('get', '/v1/conversations/{id}/context/chunks/{chunk}', {
        path: { id: of, chunk },
        query: { offset },
        ...(signal && { signal }),
      });
      setRead({ of: key, text: before + text, next, characters });
    } catch (error) {
      if (!signal?.aborted) setRead({ of: key, text: before, next: offset, characters: 0, error });
    }
  };
  useEffect(() => {
    const leaving = new AbortController();
    void load(0, '', leaving.signal);
    return () => leaving.abort();
  }, [key]);
  if (read === undefined || read.of !== key)
    return (
      <div class="note" aria-busy="true">
        Reading…
      </div>
    );
  return (
    <div class="reader">
      {read.error !== undefined && <Problem error={read.error} again={() => void load(read.next ?? 0, read.text)} />}
      {read.text !== '' && (
        <pre class="code" tabIndex={0} dir="auto">
          {plainLines(read.text)}
        </pre>
      )}
      {read.next !== null && read.error === undefined && (
        <button type="button" class="button tight" onClick={() => void load(read.next ?? 0, read.text)}>
          Read on: {count(read.text.length)} of {count(read.characters)} characters
        </button>
      )}
    </div>
  );
}
