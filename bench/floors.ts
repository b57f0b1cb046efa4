/** What Temporal itself costs: the same number of activities, bodies of the same size, and nothing else. */
import { condition, defineUpdate, proxyActivities, setHandler } from '@temporalio/workflow';
import type { FloorActivities } from './floor-activities.js';

export type FloorKind = 'text' | 'quick' | 'ordinary';

export const turnUpdate = defineUpdate<string, [string]>('turn');

const { ask, look, answer, lookAndAnswer } = proxyActivities<FloorActivities>({ startToCloseTimeout: '1m' });

const TURNS: Readonly<Record<FloorKind, (said: string) => Promise<string>>> = {
  text: answer,
  quick: async (said) => (await lookAndAnswer(await ask(said))).text,
  ordinary: async (said) => answer((await look(await ask(said))).slice(0, 20)),
};

export async function floor(kind: FloorKind): Promise<void> {
  setHandler(turnUpdate, TURNS[kind]);
  await condition(() => false);
}
