/** What agents are made of, and a place to try one. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { go, keep, place } from '../../address.js';
import { request, type Schema } from '../../api/request.js';
import { mayAct } from '../../session.js';
import { heading } from '../../shell/title.js';
import { Code } from '../../ui/code.js';
import { Link, Parts, Pending } from '../../ui/parts.js';
import { plainText, describeError, plural } from '../../ui/words.js';
import { useAnswer } from '../../ui/hooks.js';
import '../../ui/parts.css';
import './agents.css';

/** Of what a JSON Schema may say, what is shown. */
interface Arguments {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Arguments>>;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly items?: Arguments;
}

export default function Agents({ of }: { readonly of: string }): JSX.Element {
  const { value, error, again } = useAnswer('agents', (signal) => request('get', '/v1/agents', { signal }));
  const names = value?.agents ?? [];
  const shown = of !== '' ? of : (names.find((name) => name === 'default') ?? names[0] ?? '');
  useEffect(() => {
    heading.value = shown === '' ? 'Agents' : `Agent ${shown}`;
  }, [shown]);
  return (
    <div class="view-pad agents">
      <header class="view-head">
        <h1>Agents</h1>
      </header>
      {value === undefined && (shown === '' || error !== undefined) && <Pending error={error} again={again} />}
      {value !== undefined && names.length === 0 && (
        <div class="empty">There is no agent. A folder with an agent.json in the agents folder makes one.</div>
      )}
      <div class={names.length > 1 ? 'agents-sides' : ''}>
        {names.length > 1 && (
          <nav aria-label="Agents">
            <ul class="agent-list">
              {names.map((name) => (
                <li key={name}>
                  <Link view="agents" of={name} class="side-link" current={name === shown}>
                    {plainText(name, 64)}
                  </Link>
                </li>
              ))}
            </ul>
          </nav>
        )}
        {shown !== '' && <OneAgent key={shown} name={shown} />}
      </div>
    </div>
  );
}

function OneAgent({ name }: { readonly name: string }): JSX.Element {
  const maySee = mayAct('operator');
  const parts = [
    { name: 'playground', title: 'Playground' },
    ...(maySee
      ? [
          { name: 'tools', title: 'Tools' },
          { name: 'servers', title: 'MCP servers' },
          { name: 'settings', title: 'Settings' },
          { name: 'prompt', title: 'System prompt' },
        ]
      : []),
  ];
  const part = parts.find((one) => one.name === place.value.more['part'])?.name ?? 'playground';
  return (
    <section class="one-agent" aria-label={name}>
      <header class="row">
        <h2 class="grow">{plainText(name, 64)}</h2>
        {maySee && (
          <Link view="memory" of={name} class="button tight">
            Its memory
          </Link>
        )}
        <Link view="fleet" more={{ agent: name }} class="button tight">
          Its conversations
        </Link>
      </header>
      <Parts
        label={`Agent ${name}`}
        parts={parts}
        shown={part}
        onShow={(wanted) => keep({ part: wanted === 'playground' ? undefined : wanted })}
      />
      {part === 'playground' ? <Playground agent={name} /> : <Described name={name} part={part} />}
    </section>
  );
}

function Described({ name, part }: { readonly name: string; readonly part: string }): JSX.Element {
  const { value, error, again } = useAnswer(`agent ${name}`, (signal) =>
    request('get', '/v1/agents/{agent}', { path: { agent: name }, signal }),
  );
  if (value === undefined) return <Pending error={error} again={again} />;
  switch (part) {
    case 'tools':
      return <Tools tools={value.tools} />;
    case 'servers':
      return <Servers agent={name} servers={value.servers} />;
    case 'settings':
      return <Code text={JSON.stringify(value.config, undefined, 2)} />;
    default:
      return value.system === '' ? (
        <p class="note">It has no identity files: its system prompt is what Perdura says of tools and memory.</p>
      ) : (
        <Code text={value.system} />
      );
  }
}

function Tools({ tools }: { readonly tools: Schema<'Agent'>['tools'] }): JSX.Element {
  return (
    <>
      <p class="small quiet">{plural(tools.length, 'tool')} of its own; those of MCP servers come beside them.</p>
      {tools.map(({ name, description, inputSchema, from }) => (
        <details key={name} class="tool" open={tools.length === 1}>
          <summary>
            <strong class="mono">{plainText(name, 80)}</strong>
            <span class="quiet small one-line">{plainText(description, 160)}</span>
            {from !== 'built in' && <span class="pill">{plainText(from, 40)}</span>}
          </summary>
          <p class="small tool-words">{plainText(description, 4_000)}</p>
          <SchemaTable schema={inputSchema} />
        </details>
      ))}
    </>
  );
}

function SchemaTable({ schema }: { readonly schema: Arguments | null }): JSX.Element {
  const fields = Object.entries(schema?.properties ?? {});
  if (fields.length === 0) return <p class="small faint">It takes no arguments.</p>;
  const required = new Set(schema?.required);
  return (
    <div class="scroll">
      <table class="sheet">
        <thead>
          <tr>
            <th>Argument</th>
            <th>Type</th>
            <th>What it is</th>
          </tr>
        </thead>
        <tbody>
          {fields.slice(0, 100).map(([name, field]) => (
            <tr key={name}>
              <td class="mono">
                {plainText(name, 80)}
                {!required.has(name) && <span class="faint"> optional</span>}
              </td>
              <td class="mono">{plainText(describeType(field), 80)}</td>
              <td>{plainText(field.description ?? '', 1_000)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function describeType({ type, enum: values, items }: Arguments): string {
  if (values !== undefined) return values.map((value) => JSON.stringify(value)).join(' | ');
  if (type === 'array') return `${items === undefined ? 'anything' : describeType(items)}[]`;
  return Array.isArray(type) ? type.join(' | ') : typeof type === 'string' ? type : 'any';
}

function Servers({ agent, servers }: { readonly agent: string; readonly servers: readonly Schema<'McpServer'>[] }): JSX.Element {
  if (servers.length === 0) return <p class="note">It has none. They stand in mcp.json beside its agent.json.</p>;
  return (
    <>
      {servers.map(({ name, type, place: at, variables, pins, waiting = [] }) => (
        <section key={name} class="server" aria-label={name}>
          <h3>{plainText(name, 100)}</h3>
          <dl class="facts-list">
            <dt>{type === 'http' ? 'Address' : 'Program'}</dt>
            <dd class="mono">{plainText(at, 400)}</dd>
            {variables.length > 0 && (
              <>
                <dt>{type === 'http' ? 'Headers' : 'Variables'}</dt>
                <dd class="mono">{variables.map((one) => plainText(one, 60)).join(', ')}</dd>
              </>
            )}
          </dl>
          <p class="small quiet">
            {pins.length === 0
              ? 'No tool of it was accepted yet: a worker accepts what it sees first.'
              : `${plural(pins.length, 'tool')} as accepted.`}
          </p>
          <Pins pins={pins} />
          {waiting.length > 0 && (
            <>
              <p class="note warn">
                {plural(waiting.length, 'tool')} added or changed since, not offered until a person has accepted{' '}
                {waiting.length === 1 ? 'it' : 'them'}: <code>perdura mcp accept {agent}</code>
              </p>
              <Pins pins={waiting} />
            </>
          )}
        </section>
      ))}
    </>
  );
}

function Pins({ pins }: { readonly pins: readonly Schema<'ServerToolPin'>[] }): JSX.Element {
  return (
    <>
      {pins.map(({ tool, hash, description, inputSchema }) => (
        <details key={tool} class="tool">
          <summary>
            <strong class="mono">{plainText(tool, 80)}</strong>
            <span class="quiet small one-line">{plainText(description ?? 'This pin is damaged: the tool waits for a person', 160)}</span>
            <span class="pill mono" title={hash}>
              {hash.slice(0, 8)}
            </span>
          </summary>
          <SchemaTable schema={inputSchema} />
        </details>
      ))}
    </>
  );
}

/** A conversation of its own, with a memory of its own: what is tried here is not remembered elsewhere. */
function Playground({ agent }: { readonly agent: string }): JSX.Element {
  const busy = useSignal(false);
  const failure = useSignal<unknown>(undefined);
  const begin = async (form: HTMLFormElement): Promise<void> => {
    const given = new FormData(form);
    const text = given.get('text')?.toString() ?? '';
    const model = given.get('model')?.toString().trim() ?? '';
    if (text.trim() === '') return;
    busy.value = true;
    failure.value = undefined;
    const id = `scratch-${crypto.randomUUID()}`;
    try {
      await request('post', '/v1/conversations/{id}/messages', {
        path: { id },
        query: { mode: 'enqueue' },
        body: {
          text,
          start: {
            agent,
            ...(mayAct('operator') && { scope: 'scratch' }),
            title: `Scratch: ${plainText(text, 60)}`,
            ...(model !== '' && { model }),
            ...(given.get('stepping') !== null && { mode: 'stepping' as const }),
          },
        },
      });
      go(given.get('stepping') === null ? 'chat' : 'stepper', id);
    } catch (error) {
      failure.value = error;
      busy.value = false;
    }
  };
  return (
    <form
      class="playground"
      onSubmit={(event) => {
        event.preventDefault();
        void begin(event.currentTarget);
      }}
    >
      <p class="quiet small">
        A scratch conversation with this agent.{mayAct('operator') && ' Its memory is the scope “scratch”, not the agent’s own.'}
      </p>
      <textarea
        class="field"
        name="text"
        rows={5}
        aria-label="First message"
        placeholder="What would you like to try?"
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          event.currentTarget.form?.requestSubmit();
        }}
      />
      <div class="row">
        <input
          class="field grow"
          name="model"
          aria-label="Model"
          placeholder="Another model: provider/name"
          maxLength={200}
          spellcheck={false}
        />
        {mayAct('operator') && (
          <label class="small">
            <input type="checkbox" name="stepping" /> Step by step
          </label>
        )}
        <button type="submit" class="button main" disabled={busy.value}>
          Begin
        </button>
      </div>
      {failure.value !== undefined && <p class="note bad">{describeError(failure.value)}</p>}
    </form>
  );
}
