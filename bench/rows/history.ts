/** What one turn leaves in Temporal's history, in events and bytes. */
import type { Client } from '@temporalio/client';
import { activitiesOf, countedInWords } from '../activities-of.js';
import { ANSWER, FINDING, said } from '../bodies.js';
import { historiesOf, isAction, nameOf, payloadBytes, sizeOf, turnsOf, type HistoryEvent } from '../history.js';
import { mean, median, timeTurns } from '../pairs.js';
import type { Product } from '../product.js';
import type { Measured, Row } from '../row.js';

const ROUNDS = 5;
const BYTES = 3 * 1024;
const TEXT_TURNS = 100;
/** Whose bytes in Redis are counted. */
const STORED_TURNS = 40;
/** Store steps, and model steps that came back without a call. */
const STEPS_MORE = 2;
const TEXT_EVENTS = 11;
/** Every tenth turn tells its search attributes, in one event. */
const MEAN_EVENTS = 11.5;
const LONG_MESSAGE = 16 * 1024;

export const history: Row = {
  name: 'history',
  async measure({ temporal, product: productOf }) {
    const product = await productOf('redis');
    const text = await recorded(temporal, product, TEXT_TURNS + 1, (number) => said('text', 0, number));
    const long = await recorded(temporal, product, 10, (number) => `${said('text', 0, number)} `.padEnd(LONG_MESSAGE, 'x'));
    const [quiet, quietLong] = [settled(text).filter(tellsNoAttributes), settled(long).filter(tellsNoAttributes)];
    const events = median(quiet.map(lengthOf));
    const longEvents = median(quietLong.map(lengthOf));
    const meanEvents = mean(settled(text).map(lengthOf));
    const bytes = median(quiet.map(sizeOf)) - said('text', 0, 0).length - 2 * ANSWER.length;
    const ran = activitiesOf(text.flat());
    const more = ran.length - text.length;
    const rows: Measured[] = [
      {
        row: 'history: events per text turn, median',
        product: events,
        unit: '',
        toHold: `≤ ${TEXT_EVENTS}`,
        holds: events <= TEXT_EVENTS,
        notes: [`of turns that tell no search attributes; the most: ${Math.max(...quiet.map(lengthOf))}`],
      },
      {
        row: 'history: events per text turn, mean',
        product: meanEvents,
        unit: '',
        toHold: `≤ ${MEAN_EVENTS}`,
        holds: meanEvents <= MEAN_EVENTS,
      },
      {
        row: 'history: events per text turn of 16 KiB, median',
        product: longEvents,
        unit: '',
        toHold: `≤ ${TEXT_EVENTS}`,
        holds: longEvents <= TEXT_EVENTS,
        notes: breakdown(quietLong),
      },
      {
        row: `history: activities beyond one a turn, ${text.length} text turns`,
        product: more,
        unit: '',
        toHold: `≤ ${STEPS_MORE}`,
        holds: more <= STEPS_MORE,
        notes: [countedInWords(ran)],
      },
      {
        row: 'history: bytes per text turn, less bodies',
        product: bytes,
        unit: 'B',
        toHold: `≤ ${BYTES}`,
        holds: bytes <= BYTES,
        notes: breakdown(settled(text)),
      },
      { row: 'history: actions per text turn', product: mean(settled(text).map(actionsIn)), unit: '', toHold: '', holds: true },
    ];
    const stored = async (kind: 'text' | 'ordinary' | 'quick', rounds: number): Promise<number> => {
      const before = await product.storedBytes();
      await recorded(temporal, product, STORED_TURNS, (number) => said(kind, rounds, number));
      return ((await product.storedBytes()) - before) / STORED_TURNS;
    };
    const textStored = await stored('text', 0);
    rows.push({ row: 'history: bytes in Redis per text turn', product: textStored, unit: 'B', toHold: '', holds: true });
    for (const [kind, limit] of [
      ['ordinary', 12],
      ['quick', 6],
    ] as const) {
      const one = settled(await recorded(temporal, product, 10, (number) => said(kind, 1, number)));
      const more = settled(await recorded(temporal, product, 10, (number) => said(kind, ROUNDS, number)));
      const perRound = (value: (turn: readonly HistoryEvent[]) => number): number =>
        (median(more.map(value)) - median(one.map(value))) / (ROUNDS - 1);
      const count = perRound(lengthOf);
      rows.push(
        {
          row: `history: events per further round, ${kind} tool`,
          product: count,
          unit: '',
          toHold: `≤ ${limit}`,
          holds: count <= limit,
          notes: [`${more.length} turns of ${ROUNDS} rounds: ${countedInWords(activitiesOf(more.flat()))}`],
        },
        {
          row: `history: bytes per further round, ${kind} tool, less the result`,
          product: perRound(sizeOf) - FINDING.length,
          unit: 'B',
          toHold: '',
          holds: true,
          notes: breakdown(more, ROUNDS),
        },
        {
          row: `history: actions per further round, ${kind} tool`,
          product: (mean(more.map(actionsIn)) - mean(one.map(actionsIn))) / (ROUNDS - 1),
          unit: '',
          toHold: '',
          holds: true,
        },
        {
          row: `history: bytes in Redis per further round, ${kind} tool`,
          product: ((await stored(kind, ROUNDS)) - textStored) / ROUNDS,
          unit: 'B',
          toHold: '',
          holds: true,
        },
      );
    }
    return rows;
  },
};

/** All turns but the last. */
async function recorded(temporal: Client, product: Product, turns: number, text: (number: number) => string): Promise<HistoryEvent[][]> {
  const talk = await product.start();
  await timeTurns(talk, turns, text);
  return turnsOf(await historiesOf(temporal, talk.id));
}

/** Without those in which a conversation finds its settings. */
function settled<T>(turns: readonly T[]): T[] {
  return turns.slice(Math.ceil(turns.length / 5));
}

function tellsNoAttributes(turn: readonly HistoryEvent[]): boolean {
  return !turn.some((event) => event.upsertWorkflowSearchAttributesEventAttributes);
}

function actionsIn(turn: readonly HistoryEvent[]): number {
  return turn.filter(isAction).length;
}

function lengthOf(list: readonly unknown[]): number {
  return list.length;
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
