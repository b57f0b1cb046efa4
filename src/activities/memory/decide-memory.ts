/** What people decide about a scope's memory: `forget` and `review`. The memory workflow runs them, one write at a time. */
import { ApplicationFailure } from '@temporalio/common';
import { log } from '@temporalio/activity';
import type { Forgotten, Reviewed } from '../../conversation/protocol/memory-contract.js';
import { isForgotten, redactor, tombstoneFor, withoutForgotten } from '../../memory/documents/forgetting.js';
import { dropIndex, dropVectors } from '../../memory/recall/recall.js';
import { type LineSource, splitLines, type Tombstone, NO_MEMORY_VERSION } from '../../records/memory/documents.js';
import type { ScopeKey, Store } from '../../stores/store.js';
import { scopeKey } from '../key.js';
import type { MemoryUpdate, Remembered, RememberInput, WrittenMemory } from '../../conversation/context/compaction-effects.js';
import { MAX_MEMORY_BYTES } from '../../memory/consolidation/consolidate.js';
import { mergeMemory } from '../../memory/consolidation/merge.js';
import type { RememberedWrite } from '../../heal/restore-memory.js';
import type { RememberedBy } from '../dependencies.js';

export interface ForgetInput {
  readonly scope: string;
  readonly text: string;
  /** Epoch milliseconds of the decision. */
  readonly at: number;
}

export interface ReviewInput {
  readonly scope: string;
  readonly id: string;
  readonly decision: 'accept' | 'reject';
}

/** The tombstone first: from then on nothing brings it back, whatever else is cut off. All of it may be done again. */
export async function forget(store: Store, { scope, text, at }: ForgetInput): Promise<Forgotten> {
  const key = scopeKey(scope);
  const { documents, facts } = store;
  const tombstone = tombstoneFor({ scope, text, at });
  if (tombstone.words.length === 0)
    throw ApplicationFailure.nonRetryable('there is no word in this that could be forgotten', 'InvalidMessage');
  await documents.forget(key, tombstone);
  const isGone = (line: string): boolean => isForgotten(line, [tombstone], scope);
  const [lines, known, { proposals }] = await Promise.all([
    change(store, key, {
      id: `${tombstone.id}/${at}`,
      ts: at / 1000,
      cause: 'forgotten',
      make: (now) => withoutForgotten(now, [tombstone], scope),
    }),
    facts.list(key, { all: true }),
    documents.proposals(key),
  ]);
  const factIds = known.facts.filter(({ fact }) => isGone(fact)).map((fact) => fact.id);
  await facts.remove(key, factIds);
  const open = proposals.filter(({ line, state }) => state === 'open' && isGone(line)).map((proposal) => proposal.id);
  for (const proposal of open) await documents.settleProposal(key, proposal, 'rejected');
  await documents.redact(key, redactor([tombstone], scope));
  await dropIndex(store, key);
  await dropVectors(store, key);
  return { lines: lines.removed, facts: factIds, proposals: open };
}

/** An accepted line is written as the person's. */
export async function review(store: Store, { scope, id, decision }: ReviewInput): Promise<Reviewed> {
  const key = scopeKey(scope);
  if (decision === 'accept') await refuseBeyondLimit(store, key, id);
  const settled = await store.documents.settleProposal(key, id, decision === 'accept' ? 'accepted' : 'rejected');
  if (!settled || settled.state === 'open') {
    throw ApplicationFailure.nonRetryable(`there is no proposal ${id} in the memory of ${scope}`, 'UnknownProposal');
  }
  const { line, source, state } = settled;
  const isGone = isForgotten(line, await store.documents.forgotten(key), scope);
  if (state === 'accepted' && !isGone) await acceptLine(store, key, { id, line, source, at: Date.now() });
  return { id, line, state };
}

/** Before it is decided: what does not fit must not be gone. */
async function refuseBeyondLimit({ documents }: Store, key: ScopeKey, id: string): Promise<void> {
  const [{ text }, { proposals }] = await Promise.all([documents.memory(key), documents.proposals(key)]);
  const line = proposals.find((one) => one.id === id && one.state === 'open')?.line;
  const bytes = line === undefined ? 0 : Buffer.byteLength(withLine(text, line));
  if (bytes <= MAX_MEMORY_BYTES) return;
  throw ApplicationFailure.nonRetryable(
    `cannot accept ${id}: the MEMORY.md of ${key.scope} would have ${bytes} bytes, at most ${MAX_MEMORY_BYTES} are written; shorten it first, or reject the line`,
    'InvalidMessage',
  );
}

/** Into MEMORY.md, as the person's. */
export async function acceptLine(
  store: Store,
  key: ScopeKey,
  { id, line, source, at }: { readonly id: string; readonly line: string; readonly source: LineSource; readonly at: number },
): Promise<void> {
  const accepted = { line, source: { ...source, trust: 'person' as const } };
  const make = (text: string): string => withLine(text, line);
  await change(store, key, { id: `accept/${id}`, ts: at / 1000, cause: 'accepted', make, lines: [accepted] });
}

interface Change {
  readonly id: string;
  readonly ts: number;
  readonly cause: 'forgotten' | 'accepted';
  readonly make: (text: string) => string;
  readonly lines?: Parameters<Store['documents']['writeMemory']>[1]['lines'];
}

async function change({ documents }: Store, key: ScopeKey, { make, lines = [], ...what }: Change): Promise<{ readonly removed: string[] }> {
  const { before, after } = await replaceMemory(documents, key, what, ({ text }) => ({ text: make(text), lines }));
  const left = new Set(splitLines(after));
  return { removed: splitLines(before).filter((line) => !left.has(line)) };
}

function withLine(text: string, line: string): string {
  if (splitLines(text).some((known) => known.trim() === line.trim())) return text;
  return `${text === '' || text.endsWith('\n') ? text : `${text}\n`}${line}\n`;
}

// `remember`: what a consolidation has made is written: HISTORY first, then MEMORY.md, then what waits for a person. Each once per id,
// so that a second attempt changes nothing. A MEMORY.md that was edited meanwhile is merged, not overwritten.

/** `at`: when it was, in epoch milliseconds, for what is written again. */
export async function remember(store: Store, input: RememberInput, at: number = Date.now()): Promise<Remembered> {
  const key = scopeKey(input.scope);
  const ts = at / 1000;
  const { id, history, update, proposed } = input;
  const tombstones = await store.documents.forgotten(key);
  if (history) {
    // What was forgotten while the model answered does not come back.
    const text = redactor(tombstones, key.scope)(history.text);
    await store.documents.appendHistory(key, { id, kind: history.kind, ts, text });
  }
  const version = update ? await write(store, key, input, { update, tombstones, ts }) : (await store.documents.memory(key)).version;
  const open = proposed.filter(({ line }) => !isForgotten(line, tombstones, key.scope)).map((line) => ({ ...line, ts }));
  if (open.length > 0) await store.documents.propose(key, id, open);
  log.info('remembered', { scope: input.scope, id, version, proposed: proposed.length });
  return { version };
}

async function write(
  { documents }: Store,
  key: ScopeKey,
  { id, cause }: RememberInput,
  { update, tombstones, ts }: { readonly update: MemoryUpdate; readonly tombstones: readonly Tombstone[]; readonly ts: number },
): Promise<string> {
  const base = await documents.memoryText(key, update.from);
  const lines = update.added.filter(({ line }) => !isForgotten(line, tombstones, key.scope));
  const make = (current: Current): Pick<Written, 'text' | 'lines'> => {
    const isOurs = current.version === update.from || base === undefined;
    const merged = isOurs ? update.text : mergeMemory({ base, theirs: current.text, ours: update.text });
    return { text: withoutForgotten(merged, tombstones, key.scope), lines };
  };
  const { version } = await replaceMemory(documents, key, { id, ts, cause }, make, update.limit);
  return version;
}

// MEMORY.md is compared before it is set: an edit between the read and the write is read again, not overwritten.

type Documents = Store['documents'];
type Written = Parameters<Documents['writeMemory']>[1];
type Current = Awaited<ReturnType<Documents['memory']>>;

/** Between reading and writing a person may write, but hardly five times in a row. */
const TRIES = 5;

/**
 * `make` may be called again, with what there is by then. `limit`: UTF-8 bytes that there may be, also of what others have written in
 * between; what people have written stays. Throws `conflict`, which is worth another attempt.
 */
async function replaceMemory(
  documents: Documents,
  key: ScopeKey,
  what: Pick<Written, 'id' | 'ts' | 'cause'>,
  make: (current: Current) => Pick<Written, 'text' | 'lines'>,
  limit = MAX_MEMORY_BYTES,
): Promise<{ readonly version: string; readonly before: string; readonly after: string }> {
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const current = await documents.memory(key);
    const made = make(current);
    const text = withinLimit(made.text, current.text, limit);
    const left = new Set(splitLines(text));
    const lines = text === made.text ? made.lines : made.lines.filter(({ line }) => left.has(line));
    if (text !== made.text) log.warn('MEMORY.md is full: lines that are new were left out', { scope: key.scope, limit });
    if (text === current.text) return { version: current.version, before: text, after: text };
    const written = await documents.writeMemory(key, { ...what, from: current.version, text, lines });
    if (written.status === 'written') return { version: written.version, before: current.text, after: text };
  }
  throw ApplicationFailure.retryable(`cannot write MEMORY.md of ${key.scope}: it changes all the time; it is tried again`, 'conflict');
}

/** One that is beyond it already may only become smaller. Of the new lines the last ones are left out, as many as it takes. */
function withinLimit(text: string, current: string, limit: number): string {
  const most = Math.max(limit, Buffer.byteLength(current));
  let bytes = Buffer.byteLength(text);
  if (bytes <= most) return text;
  const known = new Set(splitLines(current));
  const lines = text.split(/(?<=\n)/);
  for (let at = lines.length - 1; at >= 0 && bytes > most; at--) {
    const line = lines[at] ?? '';
    if (known.has(line.replace(/\r?\n$/, ''))) continue;
    bytes -= Buffer.byteLength(line);
    lines.splice(at, 1);
  }
  return lines.join('');
}

// A store that has lost a scope's memory gets it back from the history of its one writer: what was written is written again, in its
// order and with its time, each once per id. What people wrote by hand was in the store alone, and so were raw fallbacks.
//
// - Tombstones come first, so that no text returns on the way.
// - Healing writes until all of it is there: it goes on after an interruption, and one failed write keeps no other back.
// - A decision counts for its line, whatever number that line has now.

/**
 * Whether a store that was written to has lost it. A memory whose MEMORY.md no consolidation has changed, or no model's answer was of
 * use for, is not lost: it would be healed at each consolidation, longer every time.
 */
export async function isMemoryLost({ documents }: Store, key: ScopeKey, written: WrittenMemory | undefined): Promise<boolean> {
  if ((await documents.changes(key)).changes.length > 0) return false;
  if (written?.version !== NO_MEMORY_VERSION) return true;
  for await (const { kind } of documents.history(key)) if (!written.summary || kind === 'summary') return false;
  return true;
}

export async function healMemory(store: Store, rememberedBy: RememberedBy | undefined, key: ScopeKey): Promise<void> {
  if (!rememberedBy) return;
  const writes = await rememberedBy(key.scope);
  if (writes.length === 0) return;
  const forgotten = writes.filter(({ activity }) => activity === 'forget');
  const others = writes.filter(({ activity }) => activity !== 'forget');
  let failed = 0;
  for (const write of [...forgotten, ...others]) {
    await again(store, key, write).catch((error: unknown) => {
      failed += 1;
      log.warn('a write of the memory could not be repeated', { scope: key.scope, activity: write.activity, reason: String(error) });
    });
  }
  log.warn('the store had lost a memory: written again from history', { scope: key.scope, writes: writes.length, failed });
}

async function again(store: Store, key: ScopeKey, { activity, input, result, at }: RememberedWrite): Promise<void> {
  switch (activity) {
    case 'remember':
      return void (await remember(store, input as RememberInput, at));
    case 'forget':
      return void (await forget(store, input as ForgetInput));
    case 'review': {
      const { id, line, state } = result as Reviewed;
      const open = (await store.documents.proposals(key)).proposals.find((one) => one.line === line && one.state === 'open');
      if (open) await store.documents.settleProposal(key, open.id, state);
      if (state === 'accepted') await acceptLine(store, key, { id, line, source: open?.source ?? { trust: 'person' }, at });
    }
  }
}
