/** One run of an eval: its conversation in memory, with its script or a real model, and what was claimed of it. */
import { errorMessage } from '../platform/errors.js';
import { answerText, NO_USAGE, type JsonObject, type JsonValue } from '../records/message.js';
import { ModelFailure, withStream, type Model, type ModelFailureKind } from '../models/model.js';
import { costUsd, modelsAnsweredBy, splitModel, type Models } from '../models/known-models.js';
import { offlineConsolidation } from '../models/offline.js';
import { startInMemoryWith } from '../testing/in-memory.js';
import { createScriptedModel, type ScriptedLine } from '../testing/scripted-model.js';
import type { InMemory, TestConversation } from '../testing/test-conversation.js';
import type { Extensions } from '../extensions/user-config.js';
import { ClaimFailed, createClaims, type Claim } from './assertions.js';
import type { EvalContext, EvalDefinition, ToolStub, Turn } from './index.js';
import type { Judge } from './judge.js';
import { callKey, decisionIn, type Decided, type RecordedResult, type RecordedTurn } from './recorded.js';
import { isClientTool } from '../conversation/protocol/message.js';
import { isRecord } from '../platform/json.js';
import { builtinTools } from '../tools/builtin/index.js';
import { TOOL_NAME_PATTERN } from '../tools/define-tool.js';
import type { Tool, ToolPolicy, ToolResult } from '../tools/tool.js';

/** A model of a provider in place of the script. */
export interface RealModel {
  readonly models: Models;
  /** `provider/model` in place of every one that agents name; absent: theirs. */
  readonly name?: string;
  /** For agents that name none. */
  readonly defaultModel: string;
}

export interface RunSettings {
  /** Folder of the project. */
  readonly project: string;
  readonly extensions: Extensions;
  /** Absent: the script answers. */
  readonly real?: RealModel;
  readonly judge?: Judge;
  /** Given what each call of a real model has cost; null where no price is known. */
  readonly spent: (usd: number | null) => void;
  readonly signal: AbortSignal;
}

/** What runs: an eval with one of its cases. */
export interface PlannedEval {
  readonly definition: EvalDefinition<unknown>;
  readonly item: unknown;
  /** Of its recording, or of its case. */
  readonly recorded: readonly RecordedTurn[] | undefined;
}

export interface EvalRun {
  /** `skipped` claims, and soft ones that do not hold, leave it passed. */
  readonly outcome: 'passed' | 'failed';
  readonly claims: readonly Claim[];
  readonly turns: number;
  /** Calls of the model. */
  readonly steps: number;
  /** Of real models, the judge's too; null: a price is not known. */
  readonly costUsd: number | null;
  readonly ms: number;
  /** No run of any eval can do better until a person has set a key or installed a package. */
  readonly missing?: string;
}

/** They may pass by themselves. A run is tried once, and time jumps over pauses: a provider would get a hundred requests in a second. */
const MAY_PASS: ReadonlySet<ModelFailureKind> = new Set(['rate-limit', 'overloaded', 'server', 'connection', 'timeout', 'broken-stream']);
/** These would end every other run too. */
const MISSING: ReadonlySet<string> = new Set(['missing-key', 'missing-package', 'auth', 'billing', 'forbidden', 'not-found']);

/** Never rejects: what goes wrong is a claim that does not hold. */
export async function runEval({ definition, item, recorded }: PlannedEval, settings: RunSettings): Promise<EvalRun> {
  const { project, extensions, real, judge, signal } = settings;
  const begun = performance.now();
  let cost: number | null = 0;
  const spend = (usd: number | null): void => {
    cost = cost === null || usd === null ? null : cost + usd;
    settings.spent(usd);
  };
  const script = scriptFor(definition, item);
  const scripted = createScriptedModel(script ?? []);
  const asRecorded = createScriptedModel();
  const playing = { recorded: false };
  const under = createUnderTest({ scripted, asRecorded, playing, real, spend, signal });
  const turns = new Map<string, Turn>();
  let missing: string | undefined;
  const claims = createClaims({
    isScripted: real === undefined,
    judge:
      judge &&
      (async (rubric, about) => {
        const judgement = await judge.grade(rubric, about, signal).catch((error: unknown) => {
          if (error instanceof ModelFailure && MISSING.has(error.kind)) missing = error.message;
          throw error;
        });
        spend(judgement.costUsd);
        return judgement;
      }),
    turns: () => [...turns.values()],
  });
  const results = recorded?.flatMap((turn) => turn.results);
  let perdura: InMemory | undefined;
  try {
    const { now, memory, agents, files, agent = 'default', start = {} } = definition;
    perdura = await startInMemoryWith(
      {
        model: scripted,
        project,
        extensions: definition.extensions ?? extensions,
        ...(agents && { agents }),
        ...(files && { files }),
        ...(now !== undefined && { now: new Date(now) }),
      },
      {
        models: under,
        ...(real && { defaultModel: real.name ?? real.defaultModel }),
        replaceTools: createStubs(definition.tools ?? {}, results).replace,
        ...(memory !== undefined && { memory: { scope: start.scope ?? agent, text: memory } }),
      },
    );
    const conversation = perdura.start({ ...start, agent, ...(real?.name !== undefined && { model: real.name }) }, 'eval');
    const context = createContext({
      conversation,
      perdura,
      item,
      claims,
      turns,
      scripted,
      asRecorded,
      playing,
      definition,
      recorded,
      real,
    });
    await definition.run(context);
  } catch (error) {
    if (!(error instanceof ClaimFailed)) claims.fail('it runs to its end', signal.aborted ? 'it was stopped' : errorMessage(error));
  }
  await claims.settled();
  const isFailed = claims.all.some((claim) => claim.outcome === 'failed' && !claim.isSoft);
  for (const { id, stopReason, error } of turns.values()) {
    if (stopReason === 'failed' && !isFailed && !claims.ends.has(id)) claims.fail(`${id}: is answered`, error?.message ?? 'it failed');
    if (error !== undefined && MISSING.has(error.type)) missing = error.message;
  }
  if (real === undefined && scripted.left > 0) claims.fail('all of the script is used', `${scripted.left} of its lines were not`, true);
  await perdura?.close();
  const isPassed = claims.all.every(({ outcome, isSoft }) => outcome !== 'failed' || isSoft);
  return {
    outcome: isPassed ? 'passed' : 'failed',
    claims: claims.all,
    turns: turns.size,
    steps: [...turns.values()].reduce((sum, { steps }) => sum + steps, 0),
    costUsd: cost,
    ms: performance.now() - begun,
    ...(missing !== undefined && { missing }),
  };
}

function scriptFor({ script }: EvalDefinition<unknown>, item: unknown): Parameters<typeof createScriptedModel>[0] | undefined {
  return typeof script === 'function' ? (request) => script(request, item) : script;
}

interface UnderTest {
  readonly scripted: Model;
  /** Answers where `playing.recorded`. */
  readonly asRecorded: Model;
  readonly playing: { readonly recorded: boolean };
  readonly real: RealModel | undefined;
  readonly spend: (usd: number | null) => void;
  readonly signal: AbortSignal;
}

/** The models of a run, by the names that agents give. */
function createUnderTest({ scripted, asRecorded, playing, real, spend, signal }: UnderTest): Models {
  if (real === undefined)
    return modelsAnsweredBy({ ...scripted, stream: (...given) => (playing.recorded ? asRecorded : scripted).stream(...given) });
  const chooseName = (name: string): string => real.name ?? name;
  const choose = (name: string): Model => {
    const used = chooseName(name);
    const model = real.models(used);
    return withStream(model, async (request, options) => {
      if (playing.recorded && offlineConsolidation(request) === undefined) return asRecorded.stream(request, options);
      try {
        const response = await model.stream(
          { ...request, model: splitModel(used).model },
          { ...options, signal: AbortSignal.any([options.signal, signal]) },
        );
        spend(costUsd(real.models.limits(used), response.usage));
        return response;
      } catch (error) {
        if (error instanceof ModelFailure && error.options.usage !== undefined)
          spend(costUsd(real.models.limits(used), error.options.usage));
        if (!(error instanceof ModelFailure) || !MAY_PASS.has(error.kind)) throw error;
        throw new ModelFailure('invalid-request', `${error.message} (${error.kind}; a run of an eval is tried once)`, { cause: error });
      }
    });
  };
  return Object.assign(choose, { limits: (name: string) => real.models.limits(chooseName(name)) });
}

interface Parts extends Pick<UnderTest, 'real'> {
  readonly conversation: TestConversation;
  readonly perdura: InMemory;
  readonly item: unknown;
  readonly claims: ReturnType<typeof createClaims>;
  readonly turns: Map<string, Turn>;
  readonly scripted: ReturnType<typeof createScriptedModel>;
  readonly asRecorded: ReturnType<typeof createScriptedModel>;
  readonly playing: { recorded: boolean };
  readonly definition: EvalDefinition<unknown>;
  readonly recorded: readonly RecordedTurn[] | undefined;
}

function createContext(parts: Parts): EvalContext<unknown> {
  const { conversation, perdura, item, claims, turns, scripted, asRecorded, playing, definition, recorded, real } = parts;
  /** How many turns of the recording have been sent. */
  let sent = 0;
  let latest = '';
  const messages = new Map<string, string>();

  const look = async (id: string): Promise<Turn> => {
    const turn = await readTurn(conversation, id, messages.get(id) ?? '');
    turns.set(id, turn);
    return turn;
  };
  const begin = async (message: Parameters<TestConversation['enqueue']>[0]): Promise<Turn> => {
    latest = await conversation.enqueue(message);
    messages.set(latest, typeof message === 'string' ? message : (message.text ?? ''));
    return look(latest);
  };
  /** `decideFor`: what a person did about a call, as it was recorded. */
  const decideAll = async (turn: Turn, decideFor: (call: { tool: string; arguments: unknown }) => Decided | undefined): Promise<Turn> => {
    for (let now = turn; ; now = await look(turn.id)) {
      const found = now.approvals.map((one) => [one.callId, decideFor(one)] as const).find(([, decided]) => decided !== undefined);
      if (!found) return now;
      const [callId, decided] = found;
      if (decided?.kind === 'deny') await conversation.deny(callId, decided.note);
      else if (decided?.kind === 'answer') await conversation.answer(decided.text, callId);
      else await conversation.approve(callId);
    }
  };
  /** By tool, or by the id of the call; without either the only one. */
  const findCall = async (call: string | undefined, kind: 'approval' | 'question'): Promise<string | undefined> => {
    const waiting = (await conversation.approvals()).filter((one) => one.kind === kind);
    const named = waiting.find(({ callId, tool }) => call === undefined || callId === call || tool === call);
    if (call === undefined || named) return call === undefined ? undefined : named?.callId;
    const names = waiting.map(({ tool, callId }) => `${tool} (${callId})`).join(', ');
    throw new Error(`no call ${call} waits for a person; what waits: ${names || 'nothing'}`);
  };

  return {
    case: item,
    async send(message) {
      const next = definition.recording === undefined ? undefined : recorded?.[sent++];
      if (real === undefined && next) scripted.say(...toLines(next));
      return begin(message);
    },
    async play(given) {
      const { before, turn } = given;
      playing.recorded = true;
      try {
        for (const one of before) {
          if (one.newSession && turns.size > 0) await conversation.reset();
          asRecorded.say(...toLines(one));
          const ended = await decideAll(await begin(one.message), decisionsIn([one]));
          turns.delete(ended.id);
          if (ended.stopReason === 'waiting')
            throw new Error(`${given.id}: ${one.turn} waits for a person, as it did not when it was recorded: ${describeWaiting(ended)}`);
        }
      } finally {
        playing.recorded = false;
      }
      if (real === undefined && definition.script === undefined) scripted.say(...toLines(turn));
      return decideAll(await begin(turn.message), decisionsIn([turn]));
    },
    async approve(call, options) {
      await conversation.approve(await findCall(call, 'approval'), options);
      return look(latest);
    },
    async deny(call, note) {
      await conversation.deny(await findCall(call, 'approval'), note);
      return look(latest);
    },
    async answer(text) {
      await conversation.answer(text);
      return look(latest);
    },
    reset: async () => void (await conversation.reset()),
    expect: claims.expect,
    check: claims.check,
    judge: claims.judge,
    conversation,
    perdura,
  };
}

/** What the model says in a turn, as it was recorded. */
function toLines({ answers }: RecordedTurn): ScriptedLine[] {
  return answers.map(({ text, calls }) => ({ ...(text !== undefined && { text }), ...(calls && { calls }) }));
}

/** What a person did about calls, by call: the nth as the nth. */
function decisionsIn(recorded: readonly RecordedTurn[]): (call: { tool: string; arguments: unknown }) => Decided | undefined {
  const left = recorded.flatMap(({ results }) => results.map((result) => ({ key: callKey(result.name, result.input), result })));
  return ({ tool, arguments: input }) => {
    const at = left.findIndex(({ key }) => key === callKey(tool, input));
    const [found] = at < 0 ? [] : left.splice(at, 1);
    return found && decisionIn(found.result);
  };
}

function describeWaiting({ approvals }: Turn): string {
  return approvals.map(({ tool, arguments: input }) => `${tool} ${JSON.stringify(input)}`).join(', ');
}

async function readTurn(conversation: TestConversation, id: string, message: string): Promise<Turn> {
  const approvals = await conversation.approvals();
  const calls = (await conversation.toolCalls()).filter(({ callId }) => callId.startsWith(`${id}/`));
  const steps = conversation.events.filter(
    (event) => event.kind === 'effect-completed' && event.effect === 'model-step' && event.id.startsWith(`${id}/`),
  ).length;
  if (approvals.length > 0) return { id, message, text: '', stopReason: 'waiting', calls, approvals, steps, usage: NO_USAGE };
  const { text, textRef, stopReason, error, usage } = await conversation.turn(id);
  const whole =
    textRef === undefined ? text : answerText((await conversation.messages()).findLast(({ role }) => role === 'assistant') ?? NO_MESSAGE);
  return { id, message, text: whole, stopReason, ...(error && { error }), calls, approvals, steps, usage };
}

const NO_MESSAGE = { role: 'user', text: '' } as const;

// What answers tool calls: the stubs of the eval, what was recorded of them, or the tools themselves.

interface Stubs {
  /** In place of the tools that there are. */
  replace(tools: readonly Tool[]): readonly Tool[];
}

/** A person answers it, whom the eval plays. */
const NEVER_STUBBED: ReadonlySet<string> = new Set(['ask_user']);
const OTHERS = '*';
/** As a tool that was there when it was recorded and is not here: of an MCP server, or one that was removed. */
const ABSENT: Pick<Tool, 'description' | 'inputSchema' | 'policy'> & { readonly policy: ToolPolicy } = {
  description: 'A tool of the recorded conversation.',
  inputSchema: { type: 'object', additionalProperties: true },
  policy: { repeatable: true, quick: false, timeoutMs: 60_000 },
};

/** `results` absent: nothing was recorded. */
function createStubs(stubs: Readonly<Record<string, ToolStub>>, results: readonly RecordedResult[] | undefined): Stubs {
  const recorded = createRecordedResults(results ?? []);
  const find = (name: string): ToolStub | undefined => (Object.hasOwn(stubs, name) ? stubs[name] : undefined);
  const others = find(OTHERS);

  const answer = async (name: string, input: JsonValue): Promise<ToolResult> => {
    const named = find(name);
    const result = named === undefined ? recorded.take(name, input) : undefined;
    if (result) return result.outcome === 'ok' ? { ok: true, content: result.text } : { ok: false, error: result.text };
    const stub = named ?? others;
    if (stub !== undefined) {
      const given = typeof stub === 'function' ? await stub(isRecord(input) ? (input as JsonObject) : { value: input }) : stub;
      if (typeof given === 'string') return { ok: true, content: given };
      if (isRecord(given) && typeof given.error === 'string') return { ok: false, error: given.error };
      throw new Error(`the stub of ${name} must answer a text, or { error: 'a text' }`);
    }
    return { ok: false, error: `no result of ${name} was recorded for these arguments, and the eval has no stub for it` };
  };
  const isStubbed = (name: string): boolean => {
    if (NEVER_STUBBED.has(name)) return find(name) !== undefined;
    return find(name) !== undefined || others !== undefined || results !== undefined;
  };

  return {
    replace(tools) {
      const known = new Set(tools.map(({ name }) => name));
      const missing = [...new Set([...Object.keys(stubs), ...recorded.names])].filter(
        (name) => !known.has(name) && name !== OTHERS && TOOL_NAME_PATTERN.test(name) && !isClientTool(name),
      );
      const absent = missing.map((name): Tool => ({ ...ABSENT, name, run: (input) => answer(name, input) }));
      return [...tools.map((tool) => (isStubbed(tool.name) ? standIn(tool, answer) : tool)), ...absent];
    },
  };
}

/**
 * The model is offered the same tool, and the same calls wait for a person. What built-in tools look at before a call, files and
 * addresses, is not there.
 */
function standIn(tool: Tool, answer: (name: string, input: JsonValue) => Promise<ToolResult>): Tool {
  const { name, description, inputSchema, policy, schemaViolation, mustFit, examine } = tool;
  const isBuiltin = builtinTools.some((one) => one.name === name);
  const { taskQueue: _, ...here } = policy;
  return {
    ...{ name, description, inputSchema, policy: here },
    ...(schemaViolation && { schemaViolation }),
    ...(mustFit !== undefined && { mustFit }),
    ...(examine && !isBuiltin && { examine }),
    async run(input) {
      const violation = await schemaViolation?.(input);
      return violation === undefined ? answer(name, input) : { ok: false, error: violation };
    },
  };
}

/** The nth call with these arguments gets the nth result; one more often gets the last. */
function createRecordedResults(results: readonly RecordedResult[]) {
  const byCall = new Map<string, RecordedResult[]>();
  for (const result of results) {
    const key = callKey(result.name, result.input);
    byCall.set(key, [...(byCall.get(key) ?? []), result]);
  }
  return {
    names: results.map(({ name }) => name),
    take(name: string, input: JsonValue): RecordedResult | undefined {
      const left = byCall.get(callKey(name, input));
      return left !== undefined && left.length > 1 ? left.shift() : left?.[0];
    },
  };
}
