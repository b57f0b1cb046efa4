/** Something that waits for a person, and what that person can say to it. The same in a conversation and in the inbox. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { request, RequestError, type Schema } from '../api/request.js';
import { Code, prettyJson } from '../ui/code.js';
import { Icon } from '../ui/icon.js';
import { plainLines, plainText, ago, describeError, untilThen } from '../ui/words.js';
import { CallPreview } from './call-preview.js';
import { refreshWaiting, type Waiting } from '../waiting.js';
import './decide.css';

type Decision = Omit<Schema<'Decision'>, 'callId'>;

interface DecisionCardProps {
  readonly waiting: Waiting;
  readonly onDecided?: () => void;
}

export function DecisionCard({ waiting, onDecided }: DecisionCardProps): JSX.Element {
  const busy = useSignal(false);
  const problem = useSignal('');
  const decide = (what: Decision): void => {
    busy.value = true;
    problem.value = '';
    const body = { ...what, callId: waiting.callId, ...(waiting.conversation !== waiting.via && { conversation: waiting.conversation }) };
    request('post', '/v1/conversations/{id}/decide', { path: { id: waiting.via }, body })
      .catch((error: unknown) => {
        const isLate = error instanceof RequestError && error.kind === 'not-waiting';
        problem.value = isLate ? 'This no longer waits: somebody else has decided, or its time was over.' : describeError(error);
      })
      .finally(() => {
        busy.value = false;
        onDecided?.();
        void refreshWaiting();
      });
  };
  const isSubAgent = waiting.conversation !== waiting.via;
  return (
    <section class="decision" aria-label={waiting.kind === 'question' ? 'A question waits' : `${waiting.tool} waits for approval`}>
      <header>
        <Icon name={waiting.kind === 'question' ? 'ask' : 'tool'} size={16} />
        <h2 class="minor">{describeWait(waiting)}</h2>
        <span class="small faint num">
          asked {ago(waiting.askedAt) === 'now' ? 'just now' : `${ago(waiting.askedAt)} ago`}, expires {untilThen(waiting.expiresAt)}
        </span>
      </header>
      {isSubAgent && <p class="small faint">Asked by the sub-agent {plainText(waiting.conversation, 100)}</p>}
      {waiting.why !== undefined && (
        <p class="small quiet">{waiting.tool === 'mcp_sign_in' ? withLink(plainText(waiting.why, 500)) : plainText(waiting.why, 500)}</p>
      )}
      {waiting.altered === true && (
        <p class="note bad">The stored arguments are not those that the model asked with. They will not run; refuse the call.</p>
      )}
      {waiting.kind === 'question' ? (
        <Question waiting={waiting} busy={busy.value} decide={decide} />
      ) : waiting.kind === 'client-tool' ? (
        <p class="note">The program that sent the message runs this call and answers it.</p>
      ) : (
        <Approval waiting={waiting} busy={busy.value} decide={decide} />
      )}
      {problem.value !== '' && (
        <p class="note bad" role="alert">
          {problem.value}
        </p>
      )}
    </section>
  );
}

interface PartProps {
  readonly waiting: Waiting;
  readonly busy: boolean;
  readonly decide: (what: Decision) => void;
}

function describeWait({ kind, tool }: Waiting): JSX.Element {
  if (kind === 'question') return <>The agent asks</>;
  return (
    <>
      <code>{plainText(tool, 80)}</code> {kind === 'approval' ? 'asks to run' : 'waits for its client'}
    </>
  );
}

function Question({ waiting, busy, decide }: PartProps): JSX.Element {
  const answer = useSignal('');
  const { question, options } = readQuestion(waiting);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (answer.value.trim() !== '') decide({ decision: 'approve', note: answer.value, hash: waiting.hash });
      }}
    >
      <p class="question" dir="auto">
        {plainLines(question)}
      </p>
      {options.length > 0 && (
        <div class="row">
          {options.map((option) => (
            <button
              key={option}
              type="button"
              class="button"
              disabled={busy}
              onClick={() => decide({ decision: 'approve', note: option, hash: waiting.hash })}
            >
              {plainText(option, 120)}
            </button>
          ))}
        </div>
      )}
      <div class="row">
        <input
          class="field grow"
          aria-label="Your answer"
          placeholder="Your answer"
          dir="auto"
          value={answer.value}
          onInput={(event) => (answer.value = event.currentTarget.value)}
        />
        <button type="submit" class="button main" disabled={busy || answer.value.trim() === ''}>
          Answer
        </button>
        <button type="button" class="button bare" disabled={busy} onClick={() => decide({ decision: 'deny', hash: waiting.hash })}>
          Decline
        </button>
      </div>
    </form>
  );
}

function Approval({ waiting, busy, decide }: PartProps): JSX.Element {
  const given = prettyJson(waiting.arguments ?? {});
  const edited = useSignal<string | undefined>(undefined);
  const reason = useSignal<string | undefined>(undefined);
  const input = edited.value === undefined ? undefined : objectIn(edited.value);
  const allow = (always?: true): void => {
    const changed = edited.value !== undefined && edited.value !== given && input !== undefined ? { input } : {};
    decide({ decision: 'approve', hash: waiting.hash, ...changed, ...(always && { always }) });
  };
  return (
    <>
      {edited.value === undefined ? (
        <Arguments waiting={waiting} given={given} />
      ) : (
        <>
          <textarea
            class="field mono"
            aria-label="Arguments, as JSON"
            aria-invalid={input === undefined}
            rows={Math.min(16, edited.value.split('\n').length + 1)}
            spellcheck={false}
            value={edited.value}
            onInput={(event) => (edited.value = event.currentTarget.value)}
          />
          {input === undefined && <p class="small is-bad">The arguments must be an object, as JSON.</p>}
        </>
      )}
      {reason.value !== undefined && (
        <input
          class="field"
          aria-label="Why not"
          placeholder="Why not? The agent reads it."
          dir="auto"
          value={reason.value}
          ref={(element) => element?.focus()}
          onInput={(event) => (reason.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter') decide(refusal(waiting, reason.value));
          }}
        />
      )}
      <div class="row">
        <button
          type="button"
          class="button main"
          disabled={busy || waiting.altered === true || (edited.value !== undefined && input === undefined)}
          onClick={() => allow()}
        >
          {edited.value === undefined || edited.value === given ? 'Allow' : 'Allow with changes'}
        </button>
        <button
          type="button"
          class="button"
          disabled={busy}
          onClick={() => (reason.value === undefined ? (reason.value = '') : decide(refusal(waiting, reason.value)))}
        >
          Refuse
        </button>
        <span class="grow" />
        {edited.value === undefined && waiting.arguments !== undefined && (
          <button type="button" class="button bare" disabled={busy} onClick={() => (edited.value = given)}>
            Edit arguments
          </button>
        )}
        {edited.value === undefined && waiting.mayAlways === true && (
          <button
            type="button"
            class="button bare"
            disabled={busy}
            onClick={() => allow(true)}
            title="This very call is not asked about again until the session is cleared"
          >
            Always allow
          </button>
        )}
      </div>
    </>
  );
}

/** As a person would write the call, with the arguments themselves behind it. */
function Arguments({ waiting, given }: { readonly waiting: Waiting; readonly given: string }): JSX.Element {
  const preview = CallPreview({ tool: waiting.tool, given: waiting.arguments });
  const code = <Code text={waiting.arguments === undefined ? waiting.target : given} />;
  if (preview === null) return code;
  return (
    <>
      {preview}
      <details class="all">
        <summary>All arguments</summary>
        {code}
      </details>
    </>
  );
}

function refusal({ hash }: Waiting, reason: string | undefined): Decision {
  return { decision: 'deny', hash, ...(reason !== undefined && reason.trim() !== '' && { note: reason }) };
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === 'object' && found !== null && !Array.isArray(found) ? (found as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** As `ask_user` asks; another tool that asks is shown by its target. */
function readQuestion({ arguments: given, target }: Waiting): { readonly question: string; readonly options: readonly string[] } {
  const { question, options, choices } = (typeof given === 'object' && given !== null ? given : {}) as Record<string, unknown>;
  const list = [options, choices].find(Array.isArray) as unknown[] | undefined;
  return {
    question: typeof question === 'string' ? question : target,
    options: (list ?? []).filter((one): one is string => typeof one === 'string').slice(0, 12),
  };
}

/** Of the tool that asks a person to sign in: the worker has written these words, and no model. */
function withLink(why: string): JSX.Element {
  const [, before = '', link] = /^(.*?)(https?:\/\/\S+)$/.exec(why) ?? [];
  if (link === undefined) return <>{why}</>;
  return (
    <>
      {before}
      <a href={link} target="_blank" rel="noreferrer">
        {link}
      </a>
    </>
  );
}
