/** What a summarizer must answer, and the reading of what it did answer: any text at all. */
import { z } from 'zod';
import type { JsonObject } from '../../records/message.js';
import { truncate, cleanText, cut, oneLine } from '../../records/text.js';
import { objectAt, objectsInAnswer } from '../../records/balanced-json.js';
import { foldedFact, type EpisodicItem, type SemanticItem } from '../../records/memory/items.js';
import { isRecord } from '../../platform/json.js';

/** One compaction's memory, before it has ids. */
export interface Summary {
  readonly episodic: Pick<EpisodicItem, 'summary' | 'tags' | 'salience'>;
  readonly semantic: readonly (Pick<SemanticItem, 'fact' | 'tags' | 'confidence' | 'salience'> & {
    /** Ids of known facts that this one replaces. */
    readonly supersedes?: readonly string[];
  })[];
  /** Ids of known facts that are no longer true, without another in their place. */
  readonly retired?: readonly string[];
  /** Replaces the earlier summaries that were to be folded. */
  readonly fold?: string;
  /** What the person wants by now; absent where the turns do not say. */
  readonly goal?: string;
  /** What is still to be done; absent where the summarizer does not say. */
  readonly openTasks?: readonly string[];
}

export type ParsedSummary =
  | { readonly ok: true; readonly summary: Summary }
  /** `reason` ends the sentence "the answer was not usable: …". */
  | { readonly ok: false; readonly reason: string };

/** Characters, and how many. */
export const SUMMARY_LIMITS = {
  summary: 6_000,
  fact: 500,
  facts: 20,
  tag: 40,
  tags: 10,
  superseded: 10,
  retired: 20,
  fold: 4_000,
  goal: 500,
  openTask: 200,
  openTasks: 20,
  answer: 256 * 1024,
} as const;

/** What says that a text was cut takes no more. */
const MARK_CHARACTERS = 40;
const DEPTH = 16;
const SHOWN_ISSUES = 6;

const tags = z.array(z.string().max(SUMMARY_LIMITS.tag)).max(SUMMARY_LIMITS.tags);
const share = z.number().min(0).max(1);
const ids = z.array(z.string());

export const summarySchema = z.object({
  episodic: z.object({
    summary: z.string().min(1).max(SUMMARY_LIMITS.summary).describe('What happened, what was decided, what is still open.'),
    tags,
    salience: share.describe('How much this will matter later.'),
  }),
  semantic: z
    .array(
      z.object({
        fact: z.string().min(1).max(SUMMARY_LIMITS.fact).describe('One stable fact, preference, constraint or decision, in one sentence.'),
        tags,
        confidence: share.describe('How sure it is.'),
        salience: share.describe('How much it will matter later.'),
        supersedes: ids.max(SUMMARY_LIMITS.superseded).describe('Ids of facts known already that this one replaces, since they changed.'),
      }),
    )
    .max(SUMMARY_LIMITS.facts),
  retired: ids.max(SUMMARY_LIMITS.retired).describe('Ids of facts known already that are no longer true and that no new fact replaces.'),
  fold: z
    .string()
    .max(SUMMARY_LIMITS.fold)
    .describe('The earlier summaries folded into one text; empty where none are given to be folded.'),
  goal: z
    .string()
    .max(SUMMARY_LIMITS.goal)
    .describe(
      'What the person wants from this session by now, in one or two sentences; empty where that is nothing yet, as after a greeting.',
    ),
  openTasks: z
    .array(z.string().max(SUMMARY_LIMITS.openTask))
    .max(SUMMARY_LIMITS.openTasks)
    .describe('All that is still to be done, one task each, also what was open before and still is; empty where nothing is.'),
});

/** Of a task as any model answers it; what is too long or too much is cut. */
export function taskAnswer(goal: unknown, openTasks: unknown): Pick<Summary, 'goal' | 'openTasks'> {
  const tasks = Array.isArray(openTasks)
    ? openTasks
        .filter((task): task is string => typeof task === 'string')
        .map((task) => cut(oneLine(task), SUMMARY_LIMITS.openTask - MARK_CHARACTERS))
        .filter((task) => task !== '')
        .slice(0, SUMMARY_LIMITS.openTasks)
    : undefined;
  const words = typeof goal === 'string' ? cut(cleanText(goal).trim(), SUMMARY_LIMITS.goal - MARK_CHARACTERS) : '';
  return { ...(words !== '' && { goal: words }), ...(tasks && { openTasks: tasks }) };
}

/** For providers that take a schema, and for the prompt. */
export function summaryJsonSchema(): JsonObject {
  const { $schema: _, ...schema } = z.toJSONSchema(summarySchema);
  return schema as unknown as JsonObject;
}

/** Takes the one object of the model's answer (`objectsInAnswer`) that is a summary; of two that differ, none. Never throws. */
export function parseSummary(text: string, question = ''): ParsedSummary {
  if (text.trim() === '') return { ok: false, reason: 'it was empty' };
  if (text.length > SUMMARY_LIMITS.answer) {
    return { ok: false, reason: `it has ${text.length} characters, of which at most ${SUMMARY_LIMITS.answer} are read` };
  }
  const parsed = objectsInAnswer(text, question, DEPTH).found.map(({ value }) => checkSummary(value));
  const summaries = parsed.flatMap((one) => (one.ok ? [JSON.stringify(one.summary)] : []));
  if (new Set(summaries).size > 1) return { ok: false, reason: 'there are several JSON objects in it, and they differ: answer with one' };
  return parsed.find(({ ok }) => ok) ?? parsed[0] ?? { ok: false, reason: reasonFor(text) };
}

function reasonFor(text: string): string {
  const at = text.indexOf('{');
  const search = at === -1 ? undefined : objectAt(text, at, DEPTH);
  if (search === undefined) return 'there was no JSON object in it';
  if (search.kind === 'found') return 'there was no JSON object in it but quoted ones';
  return REASONS[search.kind];
}

const REASONS = {
  unclosed: 'its JSON object is not complete',
  'too-deep': `its JSON object is nested deeper than ${DEPTH} levels`,
  'no-json': 'what stands between its braces is no valid JSON',
} as const;

/** The same for a value that is at hand. What is too long or too much of it is cut, not refused. */
export function checkSummary(value: unknown): ParsedSummary {
  const checked = summarySchema.safeParse(trimmed(value));
  if (!checked.success) return { ok: false, reason: checked.error.issues.slice(0, SHOWN_ISSUES).map(issueText).join('; ') };
  const summary = { ...cleaned(checked.data), ...(isRecord(value) && taskAnswer(value['goal'], value['openTasks'])) };
  return summary.episodic.summary === '' ? { ok: false, reason: 'episodic.summary: it says nothing' } : { ok: true, summary };
}

/** Within the bounds of the schema as far as numbers and lengths go; of too many facts the most salient stay, in their order. */
function trimmed(value: unknown): unknown {
  if (!isRecord(value)) return value;
  const { episodic, semantic } = value;
  return {
    ...value,
    fold: typeof value['fold'] === 'string' ? cutText(value['fold'], SUMMARY_LIMITS.fold) : '',
    retired: idsIn(value['retired'], SUMMARY_LIMITS.retired),
    // Read by `taskAnswer`, whatever they are.
    goal: '',
    openTasks: [],
    ...(isRecord(episodic) && { episodic: { ...withinBounds(episodic), summary: cutText(episodic['summary'], SUMMARY_LIMITS.summary) } }),
    ...(Array.isArray(semantic) && {
      semantic: mostSalient(
        semantic.map((item: unknown) =>
          isRecord(item)
            ? {
                ...withinBounds(item),
                fact: cutText(item['fact'], SUMMARY_LIMITS.fact),
                supersedes: idsIn(item['supersedes'], SUMMARY_LIMITS.superseded),
              }
            : item,
        ),
      ),
    }),
  };
}

function withinBounds(item: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { tags: given, salience, confidence } = item;
  return {
    ...item,
    ...(Array.isArray(given) && { tags: given.slice(0, SUMMARY_LIMITS.tags).map((tag: unknown) => cutText(tag, SUMMARY_LIMITS.tag)) }),
    ...(typeof salience === 'number' && { salience: clamp(salience) }),
    ...(typeof confidence === 'number' && { confidence: clamp(confidence) }),
  };
}

function mostSalient(facts: readonly unknown[]): unknown[] {
  const readSalience = (fact: unknown): number => (isRecord(fact) && typeof fact['salience'] === 'number' ? fact['salience'] : 0);
  const least = facts.map(readSalience).sort((a, b) => b - a)[SUMMARY_LIMITS.facts - 1] ?? 0;
  const above = facts.filter((fact) => readSalience(fact) > least).length;
  let room = SUMMARY_LIMITS.facts - above;
  return facts.filter((fact) => readSalience(fact) > least || (readSalience(fact) === least && room-- > 0));
}

/** None where there are none: most answers have nothing to say of it. */
function idsIn(value: unknown, most: number): string[] {
  return Array.isArray(value) ? value.filter((id): id is string => typeof id === 'string').slice(0, most) : [];
}

function cutText(value: unknown, characters: number): unknown {
  return typeof value === 'string' ? truncate(value, characters) : value;
}

function clamp(share: number): number {
  return Math.min(1, Math.max(0, share));
}

function issueText({ path, message }: z.core.$ZodIssue): string {
  return `${path.map(String).join('.') || 'the object'}: ${message}`;
}

function cleaned({ episodic, semantic, retired, fold }: z.output<typeof summarySchema>): Summary {
  const seen = new Set<string>();
  return {
    episodic: { ...episodic, summary: cleanText(episodic.summary).trim(), tags: cleanTags(episodic.tags) },
    semantic: semantic.flatMap((item) => {
      const fact = foldedFact(cleanText(item.fact));
      if (fact === '' || seen.has(fact)) return [];
      seen.add(fact);
      const { supersedes, ...rest } = item;
      return [{ ...rest, fact, tags: cleanTags(item.tags), ...(supersedes.length > 0 && { supersedes }) }];
    }),
    ...(retired.length > 0 && { retired }),
    ...(cleanText(fold).trim() !== '' && { fold: cleanText(fold).trim() }),
  };
}

/** Without ids of facts that were not shown. */
export function onlyKnown({ semantic, retired = [], ...rest }: Summary, shown: readonly string[]): Summary {
  const known = (ids: readonly string[]): string[] => ids.filter((id) => shown.includes(id));
  const left = known(retired);
  return {
    ...rest,
    semantic: semantic.map(({ supersedes = [], ...fact }) => {
      const replaced = known(supersedes);
      return replaced.length === 0 ? fact : { ...fact, supersedes: replaced };
    }),
    ...(left.length > 0 && { retired: left }),
  };
}

function cleanTags(given: readonly string[]): string[] {
  return [...new Set(given.map(oneLine).filter((tag) => tag !== ''))];
}
