/// <reference path="../../types/ms.d.ts" preserve="true" />
/**
 * `import … from 'perdura/evals'`: evals of your agents, which `perdura eval` runs: a conversation with what has to be true of it. In memory
 * with a script for the model, in milliseconds; or with a real model, as often as you like.
 *
 * @packageDocumentation
 */
import type { Extensions } from '../extensions/user-config.js';
import type { ModelRequest } from '../models/model.js';
import type { Message, StartOptions, StopReason, TurnError } from '../conversation/protocol/contract.js';
import type { JsonObject, JsonValue, Usage } from '../records/message.js';
import type { TestAgent } from '../testing/project.js';
import type { InMemory, TestApproval, TestConversation, TestToolCall } from '../testing/test-conversation.js';
import type { ScriptedLine } from '../testing/scripted-model.js';
import type { RecordedTurn } from './recorded.js';

export type { RecordedAnswer, RecordedResult, RecordedTurn } from './recorded.js';
export { callTool, callTools } from '../testing/scripted-model.js';
export type { ScriptedAnswer, ScriptedCall, ScriptedLine } from '../testing/scripted-model.js';

/** What a stub answers to a call: a text, or an error that the model reads. */
export type StubAnswer = string | { readonly error: string };

/** Answers a tool's calls in its place: nothing is booked, sent or written. */
export type ToolStub = StubAnswer | ((input: JsonObject) => StubAnswer | Promise<StubAnswer>);

/** An eval, as a file of `evals/` exports it. */
export interface EvalDefinition<Case = undefined> {
  /** For lists and filters; default: the name of its file. */
  readonly name?: string;
  /** Default: `default`. */
  readonly agent?: string;
  /**
   * What the model says where none is named with `--model`: a line for each request, or a function that answers every one. Without a script
   * the eval runs with a real model alone.
   */
  readonly script?: readonly ScriptedLine[] | ((request: ModelRequest, item: Case) => ScriptedLine | Promise<ScriptedLine>);
  /** In place of tools, by their names; `*` is for all that have none here and no recorded result. Others run. */
  readonly tools?: Readonly<Record<string, ToolStub>>;
  /** What `recording` has read: its answers are the script, and its tools answer as they did. */
  readonly recording?: RecordingFile;
  /** Files of the workspace at the beginning: texts by their paths in it. */
  readonly files?: Readonly<Record<string, string>>;
  /** MEMORY.md at the beginning. */
  readonly memory?: string;
  /** When it begins, such as `2026-11-21T09:00:00Z`; default: now. */
  readonly now?: string;
  /** Of the conversation, beside its agent: `context` for tools, `budget`, … */
  readonly start?: Omit<StartOptions, 'agent' | 'model' | 'origin' | 'message' | 'into'>;
  /** In place of the project's `agents/`: by an agent's name, the files of its folder. */
  readonly agents?: Readonly<Record<string, TestAgent>>;
  /** In place of what the project's `perdura.config.*` exports. */
  readonly extensions?: Extensions;
  /** It runs once for each; a field `id` or `name` of one names it. */
  readonly cases?: readonly Case[] | CasesFile<Case>;
  /** The conversation, and what has to be true of it. */
  run(context: EvalContext<Case>): Promise<void> | void;
}

/** What an eval works with: one conversation, which begins with the first `send`. */
export interface EvalContext<Case = undefined> {
  /** One of `cases`. */
  readonly case: Case;
  /** Sends a message. Comes back once its turn has ended, or waits for a person. */
  send(message: string | Message): Promise<Turn>;
  /**
   * Plays a case of a dataset: the turns before it as they were recorded, then its message, which the model under test answers. What a person
   * decided then is decided again for calls that are the same.
   */
  play(item: DatasetCase): Promise<Turn>;
  /** Allows a call that waits: of a tool, by the id of the call, or the only one. `input`: arguments in place of the model's. */
  approve(call?: string, options?: { readonly note?: string; readonly input?: JsonObject }): Promise<Turn>;
  /** Refuses one; the model reads the note. */
  deny(call?: string, note?: string): Promise<Turn>;
  /** Answers a question of `ask_user`. */
  answer(text: string): Promise<Turn>;
  /** Begins a new session; the old one goes to long-term memory. */
  reset(): Promise<void>;
  /** What has to be true of a turn. */
  readonly expect: Expect;
  /** Anything else that has to be true: false, a text that says what is wrong, or an exception is a failure. */
  check(what: string, claim: boolean | (() => CheckResult | Promise<CheckResult>)): Promise<void>;
  /** A judge's word on the whole conversation so far, by a rubric. */
  judge(rubric: string): Promise<void>;
  /** The conversation itself, with all that `perdura/testing` does with one. */
  readonly conversation: TestConversation;
  /** Its surroundings: workspace, MEMORY.md, the clock. */
  readonly perdura: InMemory;
}

/** What a check says: false, or a text that tells what is wrong, is a failure. */
export type CheckResult = boolean | string | undefined | void;

/** A turn as it stands: ended, or waiting for a person. */
export interface Turn {
  /** `turn_0001` */
  readonly id: string;
  /** What was sent. */
  readonly message: string;
  /** The answer; empty while a person is waited for. */
  readonly text: string;
  readonly stopReason: StopReason | 'waiting';
  readonly error?: TurnError;
  /** In their order, with results. */
  readonly calls: readonly TestToolCall[];
  /** What waits for a person. */
  readonly approvals: readonly TestApproval[];
  /** Calls of the model. */
  readonly steps: number;
  readonly usage: Usage;
}

/** Begins a claim on a turn. A claim that does not hold ends the eval; one of `expect.soft` is shown, and the eval goes on. */
export interface Expect {
  (turn: Turn): Expectation;
  /** Fails an eval only with `perdura eval --strict`. */
  soft(turn: Turn): Expectation;
}

/** A part of a call's arguments: what is named has to be so, a text may be tried by an expression, and more may be there. */
export type InputPattern = { readonly [name: string]: JsonValue | RegExp | InputPattern | readonly InputPattern[] };

/** Claims on a turn. */
export interface Expectation {
  /** It called this tool, with these arguments among others. */
  calledTool(name: string, input?: InputPattern): this;
  /** It did not call this tool, or not with these arguments. */
  notCalledTool(name: string, input?: InputPattern): this;
  /** Its answer has this text in it, or fits the expression. */
  text(expected: string | RegExp): this;
  /** How it ended, `waiting` where it waits for a person; a turn that failed fails its eval unless this says that it had to. */
  stopReason(expected: Turn['stopReason']): this;
  /** A call of this tool waits for a person. */
  waitsFor(tool: string): this;
  /** At most so many calls of the model. */
  steps(most: number): this;
  /** At most so many US dollars. Not looked at with a script, where the model has no price. */
  cost(mostUsd: number): this;
  /** Anything else: false, a text that says what is wrong, or an exception is a failure. */
  check(what: string, claim: (turn: Turn) => CheckResult | Promise<CheckResult>): Promise<void>;
  /**
   * A judge's word on the turn, by a rubric. A judge whose answer cannot be read is a failure; without a judge (`--judge`) the claim is not
   * judged, and is shown as that.
   */
  judge(rubric: string): Promise<void>;
}

/** One case of a dataset: a turn of a real conversation, and the turns before it. */
export interface DatasetCase {
  /** `conv-3f2a/turn_0003` */
  readonly id: string;
  readonly agent: string;
  /** In alphabetical order. */
  readonly labels: readonly string[];
  /** Of the same session, oldest first. */
  readonly before: readonly RecordedTurn[];
  readonly turn: RecordedTurn;
}

/** Cases that are in a file; `dataset` makes it. */
export interface CasesFile<Case> {
  readonly dataset: string;
  /** @internal Says the type, and is never there. */
  readonly of?: Case;
}

/** A recorded conversation that is in a file; `recording` makes it. */
export interface RecordingFile {
  readonly recording: string;
}

/**
 * Defines an eval; a file of `evals/` exports one as default, or a list of them.
 *
 * ```ts
 * export default defineEval({
 *   script: [callTool('book_expense', { what: 'tea', cents: 350 }), 'Booked.'],
 *   async run({ send, expect }) {
 *     const turn = await send('I had tea for 3.50.');
 *     expect(turn).calledTool('book_expense', { cents: 350 }).text(/booked/i);
 *   },
 * });
 * ```
 */
export function defineEval<Case = undefined>(definition: EvalDefinition<Case>): EvalDefinition<Case> {
  return definition;
}

/** The cases of `evals/datasets/NAME.jsonl`, which `perdura dataset add` writes. */
export function dataset(name: string): CasesFile<DatasetCase> {
  return { dataset: name };
}

/** A recorded conversation, which `perdura eval --record` writes: a path from the eval's file. */
export function recording(file: string): RecordingFile {
  return { recording: file };
}
