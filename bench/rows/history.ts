/** What one turn leaves in Temporal's history, in events and bytes. */
import type { Client } from '@temporalio/client';
import { ANSWER, FINDING, said } from '../bodies.js';
import { historiesOf, nameOf, payloadBytes, sizeOf, turnsOf, type HistoryEvent } from '../history.js';
import { mean, median, timeTurns } from '../pairs.js';
import type { Product } from '../product.js';
import type { Measured, Row } from '../row.js';

const ROUNDS = 5;
const BYTES = 3 * 1024;

export const history: Row = {
  name: 'history',
  async measure({ temporal, product: productOf }, { turns, warmUp }) {
    const product = await productOf('redis');
    const text = await recorded(temporal, product, warmUp + turns, 'text', 0);
    const events = text.map((turn) => turn.length);
    const bytes = median(text.map(sizeOf)) - said('text', 0, 0).length - 2 * ANSWER.length;
    const rows: Measured[] = [
      { row: 'history: events per text turn, median', product: median(events), unit: '', toHold: '≤ 12', holds: median(events) <= 12 },
      { row: 'history: events per text turn, mean', product: mean(events), unit: '', toHold: '≤ 12.5', holds: mean(events) <= 12.5 },
      {
        row: 'history: bytes per text turn, less bodies',
        product: bytes,
        unit: 'B',
        toHold: `≤ ${BYTES}`,
        holds: bytes <= BYTES,
        notes: breakdown(text),
      },
    ];
    for (const [kind, limit] of [
      ['ordinary', 12],
      ['quick', 8],
    ] as const) {
      const one = await recorded(temporal, product, 10, kind, 1);
      const more = await recorded(temporal, product, 10, kind, ROUNDS);
      const perRound = (value: (turn: readonly HistoryEvent[]) => number): number =>
        (median(more.map(value)) - median(one.map(value))) / (ROUNDS - 1);
      const count = perRound((turn) => turn.length);
      rows.push(
        { row: `history: events per further round, ${kind} tool`, product: count, unit: '', toHold: `≤ ${limit}`, holds: count <= limit },
        {
          row: `history: bytes per further round, ${kind} tool, less the result`,
          product: perRound(sizeOf) - FINDING.length,
          unit: 'B',
          toHold: '',
          holds: true,
          notes: breakdown(more, ROUNDS),
        },
      );
    }
    return rows;
  },
};

async function recorded(temporal: Client, product: Product, turns: number, kind: 'text' | 'quick' | 'ordinary', rounds: number) {
  const talk = await product.start();
  await timeTurns(talk, turns, (number) => said(kind, rounds, number));
  return turnsOf(await historiesOf(temporal, talk.id)).slice(Math.floor(turns / 5));
}

/** Where the bytes are: each type of event, how often in a turn, its mean size and what of that are payloads. */
function breakdown(turns: readonly (readonly HistoryEvent[])[], rounds = 1): string[] {
  const byName = new Map<string, HistoryEvent[]>();
  for (const event of turns.flat()) byName.set(nameOf(event), [...(byName.get(nameOf(event)) ?? []), event]);
  return [...byName].map(([name, events]) => {
    const often = (events.length / turns.length).toFixed(2).padStart(6);
    const size = (sizeOf(events) / events.length).toFixed(0).padStart(5);
    const payloads = (payloadBytes(events) / events.length).toFixed(0).padStart(5);
    return `${often} × ${size} B, payloads ${payloads} B   ${name}${rounds > 1 ? ` (turns of ${rounds} rounds)` : ''}`;
  });
}
