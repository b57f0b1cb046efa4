/**
 * Automatic titles. A worker makes one from the first message, once per life, after input processors and without secrets
 * (activities/make-title.ts). A person's title always takes precedence.
 *
 * If the agent sets `"titles": "model"`, a model then makes a better one from the first exchange, once and in the background. If it fails,
 * the first words stay.
 */
import { overBudget } from '../context/call-gate.js';
import type { TitleInput, ModelAnswer, ModelStepInput, ModelStepResult } from './model-step-effects.js';
import { isRunning, type Completed } from '../effect.js';
import type { EventOf } from '../event.js';
import { turnId } from '../../records/identity.js';
import { addUsage } from '../../records/message.js';
import type { ConversationState } from '../state.js';
import { isStoreUpToDate } from '../state/queue-state.js';
import { budgetOf } from '../state/budget.js';
import { firstWords } from '../../records/secret-forms.js';

/** The effect's id: there is one in a life. */
export const TITLE_ID = 'title';

export function acceptTitle(state: ConversationState, title: string | undefined): ConversationState {
  if (title === undefined || state.autoTitle !== 'wanted') return state;
  const { turn, settings } = state;
  const wantsBetter = settings?.titles === 'model' && turn !== null;
  return { ...state, title, autoTitle: 'due', ...(wantsBetter && { betterTitle: { slot: turn.firstSlot } }) };
}

/** Sets a person's title. */
export function rename({ autoTitle: _, betterTitle: __, ...state }: ConversationState, { title }: EventOf<'renamed'>): ConversationState {
  return { ...state, title };
}

/** An automatic title that lists do not have yet; it costs one event of history. */
export function titleDue({ title, autoTitle }: ConversationState): string | undefined {
  return autoTitle === 'due' && title !== null ? title : undefined;
}

export function noteTitled({ autoTitle: _, ...state }: ConversationState): ConversationState {
  return state;
}

/** Due between turns, once a turn has an answer; never beyond the budget or in stepping mode. */
export function titleInput(state: ConversationState): TitleInput | undefined {
  const { betterTitle, settings, turn, closing, control, ended, identity } = state;
  if (!betterTitle || betterTitle.isAsked || !settings || turn || closing !== 'no' || control?.mode === 'stepping') return undefined;
  const last = ended[ended.length - 1];
  if (last?.answerSlot === null || last === undefined || isRunning(state, 'title')) return undefined;
  if (!isStoreUpToDate(state) || overBudget(state.usage, budgetOf(state))) return undefined;
  return {
    identity,
    turn: turnId(last.number),
    question: betterTitle.slot,
    answer: last.answerSlot,
    model: settings.model,
    ...(settings.fallback?.next.length && { fallback: settings.fallback.next }),
    agentHash: settings.agentHash,
  };
}

export function startTitle(state: ConversationState): ConversationState {
  return state.betterTitle ? { ...state, betterTitle: { ...state.betterTitle, isAsked: true } } : state;
}

/** The cost always counts; the title only if no person has set one meanwhile. */
export function acceptMadeTitle(state: ConversationState, { output }: Completed<'title'>): ConversationState {
  const paid: ConversationState = { ...state, usage: addUsage(state.usage, output.usage) };
  if (!paid.betterTitle || output.title === undefined) return withoutBetterTitle(paid);
  return { ...withoutBetterTitle(paid), title: output.title, autoTitle: 'due' };
}

/** The first words stay, and there is no second attempt. */
export function withoutBetterTitle({ betterTitle: _, ...state }: ConversationState): ConversationState {
  return state;
}

// First words of a turn's message and answer, for Temporal's page. The workflow derives them from history; a worker sends words only if
// they differ, because an input processor changed the text or the worker removed secrets.

export const MAX_ANSWER_WORDS = 120;

/** First words of a message. Reads few characters, since every replay does so again. */
export function askedWords(text = ''): string | undefined {
  return firstWords(text, { longest: 60, read: 400 });
}

export function answeredWords(blocks: ModelAnswer['blocks']): string | undefined {
  return firstWords(spokenIn(blocks), { longest: MAX_ANSWER_WORDS, read: 400 });
}

export function spokenIn(blocks: ModelAnswer['blocks']): string {
  return blocks
    .flatMap((block) => (block.kind === 'text' ? [typeof block.text === 'string' ? block.text : block.text.preview] : []))
    .join(' ');
}

/** Uses the words of the result, which has only those that differ from history. A new question clears the earlier answer. */
export function acceptWords(state: ConversationState, { turn, write }: ModelStepInput, output: ModelStepResult): ConversationState {
  const isShown = state.settings?.showsWords === true;
  const { asked, answered } = output.words ?? {};
  const message = write.messages.find((one) => one.turn === turn);
  const question = asked === undefined && isShown && message ? askedWords(message.text) : asked;
  const answer = answered === undefined && isShown && output.kind === 'answered' ? answeredWords(output.answer.blocks) : answered;
  const { words, ...silent } = state;
  const shown = {
    ...(message ? question && { asked: question } : words),
    ...(answer && { answered: answer }),
  };
  return Object.keys(shown).length === 0 ? silent : { ...state, words: shown };
}
