/** The conversation as a card in the Temporal UI: Markdown, small, never a word that anyone else wrote. */
import type { ConversationState } from './state.js';
import { statusOf } from './view.js';

export function detailsOf(state: ConversationState): string {
  const status = statusOf(state, 0);
  const { agent, title, usage, context } = status;
  const used = context.budget > 0 ? ` (${Math.round((context.tokens / context.budget) * 100)} %)` : '';
  const lastTool = state.lastTool === null ? undefined : `**last tool** ${code(state.lastTool)}`;
  const failed = state.ended[state.ended.length - 1]?.error;
  return [
    `**${code(agent)}**${title === null ? '' : ` · ${code(title)}`}`,
    `**turn ${status.turn}** · ${status.phase} · session ${status.session}${status.queued > 0 ? ` · ${status.queued} queued` : ''}`,
    status.waitingFor === undefined ? undefined : `**waiting for** ${code(status.waitingFor)}`,
    `**context** ${context.tokens} tokens${used} · **used** ${usage.inputTokens} in, ${usage.outputTokens} out · ${costOf(usage.costUsd)}`,
    `**model** ${code(status.model ?? 'not known yet')}`,
    lastTool,
    failed ? `**last turn** ${code(`${failed.type}: ${failed.message}`)}` : undefined,
  ]
    .filter((line) => line !== undefined)
    .join('\n\n');
}

function costOf(usd: number | null): string {
  return usd === null ? 'cost not known' : `$${usd.toFixed(4)}`;
}

/** As code, so that a title or an error cannot be a link or a heading; back-ticks would end it. */
function code(text: string): string {
  return `\`${text.replace(/[`\r\n]+/g, ' ').slice(0, 300)}\``;
}
