/** What a program says to a conversation beside messages: how it starts, where it comes from, and what is to become of its turns. */
import * as v from 'valibot';
import { delegationSchema } from './human-input.js';
import { contextSchema, readMessage, type Message, type ReadMessage } from './message.js';
import {
  beginning,
  bool,
  budget,
  fieldReader,
  id,
  is,
  like,
  messageId,
  optionalOrNull,
  read,
  refuse,
  strict,
  turn,
  type Checked,
  life,
  oneOf,
} from './schema.js';
import { mode } from './stepping.js';
import { CONVERSATION_PATTERN, TENANT_PATTERN } from './limits.js';
import { isRecord } from '../../platform/json.js';
import { qualifiedScope } from '../../records/identity.js';

const originSchema = strict({
  kind: oneOf('fork', 'resume'),
  conversation: like(CONVERSATION_PATTERN),
  life,
  /** A run of that life, for healing; absent where Temporal has none any more. */
  run: v.optional(life),
  /** Default: the last one. */
  turn: v.optional(turn),
});

/** Where a conversation comes from. */
export interface Origin extends v.InferOutput<typeof originSchema> {}

/** Answer of the update `opened`, once a conversation with an origin has its beginning. */
export interface Opened {
  readonly conversation: string;
  /** The last one that is shared. */
  readonly turn: string;
  /** How many turns it begins with, and how many of them its model sees word for word. */
  readonly turns: number;
  readonly inContext: number;
  /** Estimate. */
  readonly tokens: number;
}

/** Answer of the update `rewind`. */
export interface RewindResult {
  /** The last turn that stays; `turn_0000`: none does. */
  readonly to: string;
  /** Turns that were cut, and the branch in which they are kept; null when nothing came after. */
  readonly cut: number;
  readonly branch: number | null;
  readonly session: number;
  readonly epoch: number;
  /** The one that its message becomes; absent where it came without. */
  readonly turnId?: string;
}

const TITLE_LENGTH = 200;
const REASON_LENGTH = 500;

/** Visible ASCII, since it is shown and sent in addresses; for the same reason no part of it is `..`. */
const modelName = v.pipe(
  like(/^[!-.0-~]{1,64}\/[!-~]{1,128}$/, 'look like "provider/model"'),
  v.check((name) => !/\/\.{1,2}(\/|$)/.test(name), 'must have no part that is "." or ".."'),
);

const startSchema = strict({
  agent: v.optional(id),
  scope: v.optional(id),
  /** Whose it is, where several share the installation: its memory, workspace and agents are those of this tenant. */
  tenant: optionalOrNull(like(TENANT_PATTERN)),
  /** By which those know it who may not see the ids of others; it shows in the memo alone. */
  publicId: optionalOrNull(id),
  /** The user who began it, as the gateway names users; it shows in the memo alone. */
  owner: v.optional(like(/^[^\p{C}]{1,300}$/u, 'have 1 to 300 visible characters')),
  title: optionalOrNull(beginning(TITLE_LENGTH)),
  /** False: the first message gives no title to a conversation without one. */
  autoTitle: v.optional(bool),
  model: optionalOrNull(modelName),
  mode: v.optional(mode),
  budget: v.optional(budget),
  /** After how many days without a message it is closed, such as `30d`; default: what its agent says. It shows in the memo. */
  idle: v.optional(like(/^[1-9]\d{0,3}d$/, 'be days, such as "30d"')),
  /** Values that tools see and the model never does. */
  context: v.optional(contextSchema),
  /** A conversation sets it when it starts a sub-agent; from any other sender it is refused. */
  delegation: v.optional(delegationSchema),
  /** What it begins with: the turns of another life, up to one of them. */
  origin: optionalOrNull(originSchema),
  /** The first message, as of `send`. Of a Temporal Schedule its id is `<schedule>@<due>`: a due time is one message. */
  message: v.optional(v.custom<string | Message>(() => true)),
  /** Begins no conversation: hands `message` to this one, which runs, and ends. For Temporal Schedules, which only start workflows. */
  into: v.optional(like(CONVERSATION_PATTERN)),
});

/** Argument of the workflow `conversation` at its start. */
export interface StartOptions extends v.InferOutput<typeof startSchema> {}

export type ReadStart = ReturnType<typeof withDefaults> & { readonly first?: ReadMessage };

export function readStart(payload: unknown): Checked<ReadStart> {
  // A state is taken from an earlier run alone (workflows/conversation.ts).
  const { carried: _, ...given } = isRecord(payload) ? payload : {};
  const start = read(startSchema, isRecord(payload) && 'carried' in payload ? given : (payload ?? {}), 'start');
  if (!start.ok) return start;
  const { message, into, delegation } = start.value;
  if (message === undefined)
    return into === undefined ? { ok: true, value: withDefaults(start.value) } : refuse('start.into needs start.message');
  if (delegation) return refuse('start.message is for conversations: a sub-agent begins with its task');
  const first = readMessage(message);
  if (!first.ok) return refuse(`start.message: ${first.reason}`);
  if (first.value.kind === 'reset') return refuse('start.message is the reset: a conversation begins without anything to clear');
  return { ok: true, value: { ...withDefaults(start.value), first: first.value } };
}

function withDefaults({
  agent = 'default',
  scope = agent,
  tenant,
  publicId,
  title,
  autoTitle = true,
  model,
  origin,
  ...rest
}: StartOptions) {
  const named = { tenant: tenant ?? null, publicId: publicId ?? null, title: title ?? null, model: model ?? null, origin: origin ?? null };
  // `scope` has the tenant too, in its whole name.
  return { ...rest, ...named, agent, scope: qualifiedScope(tenant, scope), autoTitle };
}

/** `{ id? }` of `new`, `reset`; `{ reason? }` of `interrupt`: one optional text, or nothing at all. */
export function readOptionalText(payload: unknown, name: string, field: 'id' | 'reason'): Checked<string | undefined> {
  const schema = strict({ [field]: v.optional(field === 'id' ? messageId : beginning(REASON_LENGTH)) });
  const fields = read(schema, payload ?? {}, name);
  return fields.ok ? { ok: true, value: fields.value[field] } : fields;
}

/** Of the signal `close`. */
export function readClose(payload: unknown): Checked<{ readonly memory?: false }> {
  const close = read(strict({ memory: v.optional(bool) }), payload ?? {}, 'close');
  return close.ok ? { ok: true, value: close.value.memory === false ? { memory: false } : {} } : close;
}

/** Of the signal `upgrade`. */
export function readUpgrade(payload: unknown): Checked<{ readonly parked?: true }> {
  const upgrade = read(strict({ parked: v.optional(bool) }), payload ?? {}, 'upgrade');
  return upgrade.ok ? { ok: true, value: upgrade.value.parked === true ? { parked: true } : {} } : upgrade;
}

const title = v.pipe(
  is<string>('a text that is not empty', (value) => typeof value === 'string' && value.trim() !== ''),
  v.transform((value) => value.trim()),
  beginning(TITLE_LENGTH),
);
export const readTitle = fieldReader('rename', 'title', title);
/** Of `setModel`; null: the agent's model again. */
export const readModelChoice = fieldReader('setModel', 'model', v.nullable(modelName));
export const readTurnRequest = fieldReader('turn', 'turnId', turn);

const rewindSchema = v.pipe(
  strict({ to: v.optional(turn), before: v.optional(turn), id: v.optional(messageId), message: v.optional(v.unknown()) }),
  v.check(({ to, before }) => (to === undefined) !== (before === undefined), 'takes either "to" or "before"'),
);

export interface ReadRewind {
  readonly to: string;
  /** True: this turn goes too. */
  readonly before?: true;
  readonly id?: string;
  readonly message?: ReadMessage;
}

/** `{ to | before, id?, message? }` of `rewind`. */
export function readRewind(payload: unknown): Checked<ReadRewind> {
  const rewind = read(rewindSchema, payload, 'rewind');
  if (!rewind.ok) return rewind;
  const { to, before = '', message, ...named } = rewind.value;
  const place = to === undefined ? { to: before, before: true as const } : { to };
  if (message === undefined) return { ok: true, value: { ...place, ...named } };
  const checked = readMessage(message);
  if (!checked.ok) return refuse(`rewind.message: ${checked.reason}`);
  if (checked.value.kind === 'reset') return refuse('rewind.message is the reset: rewind first, then reset');
  return { ok: true, value: { ...place, ...named, message: checked.value } };
}
