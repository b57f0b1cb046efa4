/** The conversation as a card in the Temporal UI: Markdown, small, never a word that anyone else wrote. */
import type { ConversationState } from '../state.js';
import { asCode } from '../../records/text.js';
import { statusOf } from './view.js';

export function detailsOf(state: ConversationState): string {
  const status = statusOf(state, 0);
  const { agent, title, usage, context } = status;
  const used = context.budget > 0 ? ` (${Math.round((context.tokens / context.budget) * 100)} %)` : '';
  const lastTool = state.lastTool === null ? undefined : `**last tool** ${toolInWords(state.lastTool)}`;
  const failed = state.ended[state.ended.length - 1]?.error;
  return [
    `**${asCode(agent)}**${title === null ? '' : ` · ${asCode(title)}`}`,
    `**turn ${status.turn}** · ${status.phase} · session ${status.session}${status.queued > 0 ? ` · ${status.queued} queued` : ''}`,
    status.waitingFor === undefined ? undefined : `**waiting for** ${asCode(status.waitingFor)}`,
    `**context** ${context.tokens} tokens${used} · **used** ${usage.inputTokens} in, ${usage.outputTokens} out · ${costOf(usage.costUsd)}`,
    `**model** ${asCode(status.model ?? 'not known yet')}`,
    lastTool,
    failed ? `**last turn** ${asCode(`${failed.type}: ${failed.message}`)}` : undefined,
  ]
    .filter((line) => line !== undefined)
    .join('\n\n');
}

function toolInWords({ name, target, outcome }: NonNullable<ConversationState['lastTool']>): string {
  return `${asCode(target === '' ? name : `${name}: ${target}`)}${outcome === undefined ? '' : ` · ${outcome}`}`;
}

function costOf(usd: number | null): string {
  return usd === null ? 'cost not known' : `$${usd.toFixed(4)}`;
}
