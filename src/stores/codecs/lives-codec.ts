/** Records of how lives stand on each other, as they lie in a store. What cannot be read counts as not there. */
import { z } from 'zod';
import type { Beginning, Cut } from '../../records/lives.js';
import { MAX_ERROR, UNFINISHED, type TurnEnd } from '../../records/turn-end.js';
import { decodeJson } from './entry-codec.js';

const slot = z.number().int().nonnegative();
const MAX_RANGES = 100_000;
const ranges = z.array(z.tuple([slot, slot]).refine(([from, to]) => from <= to && to - from < 10_000_000)).max(MAX_RANGES);
const name = z.string().min(1).max(300);

const beginningSchema = z.object({
  v: z.literal(1),
  kind: z.enum(['fork', 'resume']),
  of: z.object({ conversation: name, life: name }),
  turn: z.number().int(),
  shared: z.array(z.object({ conversation: name, life: name, scope: name, run: name.optional(), slots: ranges })).max(1_000),
  archived: ranges,
  joined: z
    .array(z.object({ session: z.number().int(), of: z.array(z.number().int()).max(MAX_RANGES) }))
    .max(MAX_RANGES)
    .optional(),
});

const cutSchema = z.object({
  v: z.literal(1),
  id: name,
  branch: z.number().int(),
  to: z.number().int(),
  begun: slot,
  since: z.number(),
  slot,
  at: z.number(),
  session: z.number().int(),
  slots: ranges,
});

const turnEndSchema = z.object({
  v: z.literal(1),
  turn: z.string().regex(/^turn_\d{4,15}$/),
  stopReason: z.enum(UNFINISHED),
  error: z.object({ type: z.string().max(200), message: z.string().max(MAX_ERROR) }).optional(),
});

/** A life that shares entries of the one where this lies. */
const forkSchema = z.object({ conversation: name, life: name, scope: name });
export type Fork = z.output<typeof forkSchema>;

const deletedSchema = z.object({ v: z.literal(1), life: name, at: z.number() });
export type DeletedRecord = z.output<typeof deletedSchema>;

export function decodeDeleted(text: string | null | undefined): DeletedRecord | undefined {
  return deletedSchema.safeParse(decodeJson(text)).data;
}

export function decodeBeginning(text: string | null | undefined): Beginning | undefined {
  return beginningSchema.safeParse(decodeJson(text)).data;
}

export function decodeCut(text: string | null | undefined): Cut | undefined {
  return cutSchema.safeParse(decodeJson(text)).data;
}

export function decodeTurnEnd(text: string | null | undefined): TurnEnd | undefined {
  return turnEndSchema.safeParse(decodeJson(text)).data;
}

export function decodeFork(text: string | null | undefined): Fork | undefined {
  return forkSchema.safeParse(decodeJson(text)).data;
}
