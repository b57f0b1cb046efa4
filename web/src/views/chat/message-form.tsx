/** Where one writes. Enter sends, Shift+Enter begins a line. What was begun is kept until it is sent. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { toAddress, ask } from '../../api/request.js';
import type { Delivery } from '../../conversation/outbox.js';
import type { Media, NamedMedia } from '../../conversation/turns.js';
import { Icon } from '../../ui/icon.js';
import { bytes, describeError } from '../../ui/words.js';

export interface Message {
  readonly text: string;
  readonly images: readonly Media[];
  readonly documents: readonly NamedMedia[];
  readonly delivery: Delivery;
}

interface MessageFormProps {
  readonly label: string;
  /** A turn runs: how the message reaches it can be chosen. */
  readonly isBusy: boolean;
  readonly onSend: (message: Message) => void;
  readonly onStop?: () => void;
  readonly children?: ComponentChildren;
}

const DELIVERIES: readonly (readonly [Delivery, string, string])[] = [
  ['queue', 'Queue', 'It is answered when the running turn has ended'],
  ['steer', 'Steer', 'The running turn reads it at its next step'],
  ['interrupt', 'Interrupt', 'The running turn is stopped, and this is answered next'],
];

export function MessageForm({ label, isBusy, onSend, onStop, children }: MessageFormProps): JSX.Element {
  const text = useSignal('');
  const delivery = useSignal<Delivery>('queue');
  const attached = useSignal<readonly Attachment[]>([]);
  const problem = useSignal('');
  const area = useRef<HTMLTextAreaElement>(null);
  const files = useRef<HTMLInputElement>(null);

  useEffect(() => area.current?.focus({ preventScroll: true }), []);
  useLayoutEffect(() => {
    const element = area.current;
    if (element === null) return;
    element.style.height = 'auto';
    element.style.height = `${Math.min(element.scrollHeight + 2, 320)}px`;
  }, [text.value]);

  const send = (): void => {
    if (text.value.trim() === '' && attached.value.length === 0) return;
    const media = attached.value.map((one) => one.media);
    const [images, documents] = [media.filter(isPicture), media.filter((one) => !isPicture(one))];
    onSend({ text: text.value, images, documents, delivery: isBusy ? delivery.value : 'queue' });
    text.value = '';
    attached.value = [];
    problem.value = '';
  };
  const add = async (list: readonly File[]): Promise<void> => {
    try {
      attached.value = await sendFiles(list, attached.value);
      problem.value = '';
    } catch (error) {
      problem.value = describeError(error);
    }
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void add([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      <div class="composer-box">
        {attached.value.length > 0 && (
          <ul class="pictures">
            {attached.value.map((picture, at) => (
              <li key={picture.key}>
                {picture.shown === undefined ? (
                  <span class="file-name small">{picture.name}</span>
                ) : (
                  <img src={picture.shown} alt={picture.name} />
                )}
                <button
                  type="button"
                  class="button square tight"
                  aria-label={`Remove ${picture.name}`}
                  onClick={() => (attached.value = attached.value.filter((_, index) => index !== at))}
                >
                  <Icon name="close" size={12} />
                </button>
              </li>
            ))}
          </ul>
        )}
        <textarea
          ref={area}
          rows={1}
          aria-label={label}
          placeholder={isBusy ? 'Say something to the running turn, or for after it' : 'Write a message'}
          value={text.value}
          dir="auto"
          onInput={(event) => (text.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            send();
          }}
          onPaste={(event) => {
            const pasted = [...(event.clipboardData?.files ?? [])];
            if (pasted.length === 0) return;
            event.preventDefault();
            void add(pasted);
          }}
        />
        <div class="composer-foot">
          <input
            ref={files}
            class="unseen"
            type="file"
            accept={OFFERED}
            multiple
            tabIndex={-1}
            aria-label="Files"
            onChange={(event) => {
              void add([...(event.currentTarget.files ?? [])]);
              event.currentTarget.value = '';
            }}
          />
          <button
            type="button"
            class="button bare square"
            aria-label="Attach files"
            title="Attach pictures, PDF or text"
            onClick={() => files.current?.click()}
          >
            <Icon name="attach" />
          </button>
          {children}
          {isBusy && (
            <div class="choice" role="radiogroup" aria-label="How it reaches the running turn">
              {DELIVERIES.map(([name, shown, meaning]) => (
                <label key={name} title={meaning}>
                  <input type="radio" name="delivery" checked={delivery.value === name} onChange={() => (delivery.value = name)} />
                  <span>{shown}</span>
                </label>
              ))}
            </div>
          )}
          <span class="space" />
          {isBusy && onStop !== undefined && (
            <button type="button" class="button" onClick={onStop}>
              <Icon name="stop" size={14} />
              Stop
            </button>
          )}
          <button
            type="submit"
            class="button main square"
            aria-label="Send"
            disabled={text.value.trim() === '' && attached.value.length === 0}
          >
            <Icon name="send" />
          </button>
        </div>
      </div>
      {problem.value !== '' && (
        <p class="note bad" role="alert">
          {problem.value}
        </p>
      )}
    </form>
  );
}

// Files go before the message, so that it only names them. What a file is the gateway says, by its content.

interface Attachment {
  readonly key: string;
  readonly name: string;
  readonly media: NamedMedia;
  /** Of a picture: an address of the browser's own. */
  readonly shown?: string;
}

const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
/** What a browser offers first; the gateway takes any text in UTF-8 or UTF-16. */
const OFFERED = [...PICTURES, 'application/pdf', 'text/*', '.md', '.json', '.csv', '.yaml', '.log'].join(',');
/** The gateway may take less, and then says so. */
const MAX_BYTES = 10 * 1024 * 1024;
const MAX_FILES = 8;

async function sendFiles(files: readonly File[], known: readonly Attachment[]): Promise<Attachment[]> {
  for (const { name, type, size } of files) {
    const shown = name.slice(0, 80);
    if (type.startsWith('image/') && !PICTURES.includes(type)) {
      throw new Error(`${shown} cannot be sent: pictures are PNG, JPEG, GIF or WebP`);
    }
    if (size > MAX_BYTES) throw new Error(`${shown} (${bytes(size)}) is too large: a file may have ${bytes(MAX_BYTES)}`);
  }
  if (known.length + files.length > MAX_FILES) throw new Error(`a message takes ${MAX_FILES} files here`);
  const sent = await Promise.all(files.map(sendFile));
  return [...known, ...sent];
}

function isPicture({ mediaType }: Media): boolean {
  return mediaType.startsWith('image/');
}

async function sendFile(file: File): Promise<Attachment> {
  const answer = await ask(toAddress('/v1/attachments'), { method: 'POST', body: file });
  const { ref, mediaType } = (await answer.json()) as { readonly ref: string; readonly mediaType: string };
  const name = file.name.slice(0, 80);
  const media = mediaType.startsWith('image/') ? { mediaType, ref } : { mediaType, ref, name };
  return { key: crypto.randomUUID(), name, media, ...(isPicture(media) && { shown: URL.createObjectURL(file) }) };
}
