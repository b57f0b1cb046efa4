/** What a search is not to fall over that takes its time: the largest texts, thousands of scopes, two workers at once, workers that die. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { formatHits } from '../../../src/memory/recall/question.js';
import { createRecall } from '../../../src/memory/recall/recall.js';
import { HEAD } from '../../../src/memory/recall/segments.js';
import { createFileStore } from '../../../src/stores/file/index.js';
import type { Store } from '../../../src/stores/store.js';
import { aConversation, aScope } from '../../stores/builders.js';
import { log, now, searchedPlace, TALK } from './place.js';

const place = searchedPlace();
const { recallOf, say, found } = place;

test.each<[string, string]>([
  ['1 MiB in one word', `${'x'.repeat(1024 * 1024)} dentist`],
  ['100,000 distinct words', `${Array.from({ length: 100_000 }, (_, i) => `word${i}`).join(' ')} dentist`],
  ['a million line breaks', '\n'.repeat(1_000_000)],
  ['a million letters without a blank', '漢'.repeat(1_000_000)],
  ['what is no text', '\ud800\u0000'.repeat(10_000)],
])('an entry of %s is indexed within bounds, and those around it are found', async (_, text) => {
  await say([TALK[2] ?? '', text, TALK[1] ?? '']);
  const recall = recallOf();
  expect((await found('who are the dentists', recall))[0]).toBe(TALK[2]);
  expect((await found('how is the boat called', recall))[0]).toBe(TALK[1]);
  expect(recall.bytes()).toBeLessThan(16 * 1024 * 1024);
  const all = await recall.search(place.key, { question: 'dentist word7 漢 boat', now });
  expect(formatHits(all).length).toBeLessThan(4_500);
});

test('two workers of one scope find what either has written, and neither’s snapshot takes from the other', async () => {
  const [here, there] = [recallOf(createFileStore({ dir: place.dir })), recallOf(createFileStore({ dir: place.dir }))];
  for (let round = 0; round < 6; round += 1) {
    await say([...log(600), `In round ${round} the parrot was called Captain${round}`], { ...place.key, conversation: `conv_${round}` });
    const both = await Promise.all([here, there].map((recall) => found(`Captain${round} parrot`, recall)));
    for (const texts of both) expect(texts[0]).toContain(`Captain${round}`);
  }
  expect((await found('Captain0 parrot'))[0]).toContain('Captain0');
});

test('two workers that seal the same messages do not disturb each other, and what nothing lists goes in time', async () => {
  const written: string[] = [];
  const workerOf = () => {
    const own = createFileStore({ dir: place.dir });
    const writeIndex: Store['scopes']['writeIndex'] = (of, part, bytes) => {
      if (part !== HEAD) written.push(part);
      return own.scopes.writeIndex(of, part, bytes);
    };
    return createRecall({ store: { ...own, scopes: { ...own.scopes, writeIndex } }, sealed: 300, log: (line) => place.lines.push(line) });
  };
  const both = [workerOf(), workerOf()];
  const rounds = 6;
  for (let round = 0; round < rounds; round += 1) {
    const texts = [...log(1_100), `In round ${round} the parrot was called Captain${round}`];
    await say(texts, { ...place.key, conversation: `conv_${round}` });
    const found = await Promise.all(both.map((recall) => recall.search(place.key, { question: `Captain${round} parrot`, now, limit: 1 })));
    for (const [hit] of found) expect(hit?.text).toContain(`Captain${round}`);
  }
  for (const recall of both) await recall.search(place.key, { question: 'parrot', now });
  // Each seals for itself; none writes again what it has.
  expect(written.length).toBeLessThanOrEqual((2 * rounds * 1_101) / 300);
  const [old, fresh] = [Date.now() - 4_000_000, Date.now()].map((at) => `part-${at}-x`) as [string, string];
  for (const part of [old, fresh]) await place.store.scopes.writeIndex(place.key, part, new Uint8Array([1]));
  const reader = createRecall({ store: place.store, sealed: 10_000 });
  expect((await reader.search(place.key, { question: 'Captain3 parrot', now }))[0]?.text).toContain('Captain3');
  expect(await place.store.scopes.indexParts(place.key)).toEqual(expect.arrayContaining([old, fresh]));
  await say(log(1_100), { ...place.key, conversation: 'conv_99' });
  await both[0]?.search(place.key, { question: 'parrot', now });
  const parts = await place.store.scopes.indexParts(place.key);
  expect([parts.includes(old), parts.includes(fresh)]).toEqual([false, true]);
  expect(place.lines).toEqual([]);
});

test('10,000 scopes take no more memory than they may', async () => {
  const most = 4_000_000;
  const recall = createRecall({ store: place.store, cacheBytes: most });
  const scopes = Array.from({ length: 10_000 }, () => aConversation(aScope()));
  for (const [i, of] of scopes.entries()) {
    // Few have anything; all are searched.
    if (i % 50 === 0) await say(TALK, of);
    const hits = await recall.search(of, { question: 'dentist', now });
    if (i % 50 === 0) expect(hits[0]?.text).toBe(TALK[2]);
    if (recall.bytes() > most) throw new Error(`${recall.bytes()} bytes after ${i} scopes`);
  }
  expect((await recall.search(scopes[0] ?? place.key, { question: 'dentist', now }))[0]?.text).toBe(TALK[2]);
});

test('a scope whose index alone is larger than all may be is searched all the same, within the limit afterwards, and what to set is said once', async () => {
  await say([...TALK, ...log(6_000)]);
  const most = 100_000;
  const recall = createRecall({ store: place.store, cacheBytes: most, log: (line) => place.lines.push(line) });
  for (let i = 0; i < 3; i += 1) {
    const asked = ['who are the dentists', 'how is the boat called', 'where do we sail'];
    const answers = await Promise.all(asked.map((question) => found(question, recall)));
    expect(answers.map(([first]) => first)).toEqual([TALK[2], TALK[1], TALK[0]]);
    expect(recall.bytes()).toBeLessThanOrEqual(most);
  }
  expect(place.lines).toEqual([
    expect.stringMatching(/search index of .* takes \d\.\d MB.* set PERDURA_SEARCH_CACHE_BYTES to \d+ or more$/),
  ]);
  // What is new is written down soon, so that the next search need not read it again.
  await say(log(1_100), place.key, 6_005);
  await found('dentist', recall);
  const written = await place.store.scopes.readIndex(place.key, HEAD);
  await found('dentist', recall);
  expect(Buffer.from((await place.store.scopes.readIndex(place.key, HEAD)) ?? []).equals(Buffer.from(written ?? []))).toBe(true);
});

test('a worker that is killed while it indexes leaves what the next one can use', async () => {
  for (let n = 0; n < 4; n += 1) await say(log(3_000), { ...place.key, conversation: `conv_${n}` });
  await say(TALK);
  for (const ms of [50, 200, 400, 800, 1_500]) {
    const child = fork(join(__dirname, 'index-scope.cjs'), [place.dir, place.key.scope], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    const [word] = (await once(child, 'message')) as [string];
    expect(word).toBe('begins');
    setTimeout(() => child.kill('SIGKILL'), ms);
    await once(child, 'close');
    expect((await found('who are the dentists'))[0]).toBe(TALK[2]);
  }
});
