/** What Temporal itself costs: the same number of activities, bodies of the same size, and nothing else. */
import { condition, defineUpdate, proxyActivities, proxyLocalActivities, setHandler } from '@temporalio/workflow';
import type { FloorActivities } from './floor-activities.js';

export type FloorKind = 'text' | 'quick' | 'ordinary';

export const turnUpdate = defineUpdate<string, [string]>('turn');

const { ask, look, answer } = proxyActivities<FloorActivities>({ startToCloseTimeout: '1m' });
const local = proxyLocalActivities<FloorActivities>({ startToCloseTimeout: '1m' });

const TURNS: Readonly<Record<FloorKind, (said: string) => Promise<string>>> = {
  text: answer,
  quick: async (said) => answer((await local.look(await ask(said))).slice(0, 20)),
  ordinary: async (said) => answer((await look(await ask(said))).slice(0, 20)),
};

export async function floor(kind: FloorKind): Promise<void> {
  setHandler(turnUpdate, TURNS[kind]);
  await condition(() => false);
}
