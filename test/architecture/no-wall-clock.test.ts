/** The lint rule that keeps measured time from deciding in a test: what it finds, through which turns of a value, and what it lets pass. */
import { RuleTester, type Rule } from 'eslint';
import { parser } from 'typescript-eslint';

const rule = require('../../scripts/eslint/no-wall-clock.cjs') as Rule.RuleModule;

const tester = new RuleTester({ languageOptions: { parser } });

const refused = (messageId: string) => (code: string) => ({ name: code, code, errors: [{ messageId }] });

tester.run('no-wall-clock: a comparison', rule, {
  invalid: [
    'const begun = Date.now(); work(); expect(Date.now() - begun).toBeLessThan(5_000);',
    'const begun = performance.now(); const took = performance.now() - begun; expect(took).not.toBeGreaterThan(5);',
    'const begun = process.hrtime.bigint(); expect(Number(process.hrtime.bigint() - begun) / 1e6).toBeLessThan(5);',
    'const begun = process.cpuUsage(); const { user, system } = process.cpuUsage(begun); expect(user + system).toBeLessThan(5);',
    'expect(process.resourceUsage().userCPUTime - before).toBeLessThan(5);',
    'const begun = new Date(); expect(new Date().getTime() - begun.getTime()).toBeGreaterThanOrEqual(20);',
    'let last = 0; last = performance.now(); if (last > 10) throw new Error("slow");',
    'const until = Date.now() + LIMIT; while (look() !== 3 && Date.now() < until) await pause();',
    'async function timed(run: () => void) { const from = Date.now(); run(); return Date.now() - from; } expect(await timed(run)).toBeLessThan(9);',
    'const p95 = () => { const all: number[] = []; all.push(performance.now() - from); return all.sort()[94] ?? 0; }; expect(p95()).toBeLessThan(9);',
    'const median = (of: number[]) => [...of].sort()[5]; expect(median([Date.now() - a, Date.now() - b]) / 2).toBeLessThan(9);',
    'const check = (ms: number) => expect(ms).toBeLessThan(9); check(performance.now() - begun);',
    'const [count, at] = [read(), performance.now()]; expect(at - 1).toBeCloseTo(5);',
    'const ends = await Promise.all(reads.map(async (read) => ({ read: await read, at: Date.now() }))); ends.map(({ at }) => expect(at - 1).toBeLessThan(9));',
    'const last = await read.then((text) => ({ text, at: Date.now() })); expect(last.at).toBeLessThan(9);',
    'const worst = await page.evaluate<number>(`performance.now() - window.begun`); expect(worst).toBeLessThan(1_000);',
    'expect(Math.max(...(await Promise.all(calls.map(() => Date.now() - begun))))).toBeLessThan(9);',
    'import { read } from "./read"; const { elapsedMs } = read(); expect(elapsedMs).toBeLessThan(9);',
    'expect(result.durationMs).toBeLessThan(9);',
  ].map(refused('compared')),
  valid: [
    'const begun = Date.now(); report(Date.now() - begun);',
    'expect(looks).toBeLessThan(12);',
    'const [count, at] = [read(), performance.now()]; expect(count).toBeLessThan(5); report(at);',
    'const { text } = await read.then((text) => ({ text, at: Date.now() })); expect(text.length).toBeLessThan(9);',
    'const clock = { now: 0 }; clock.now = 1_001; expect(clock.now).toBeGreaterThan(1_000);',
    'const upload = { expiresAt: Date.now() + 60_000, uses: 3 }; expect(upload.uses).toBeLessThan(5);',
    'const elapsed = 5; expect(elapsed).toBeLessThan(9);',
  ],
});

tester.run('no-wall-clock: a bound', rule, {
  invalid: [
    'await waitFor(look, Boolean, 5_000);',
    'await until("it waits", look, 2 * 1_000);',
    'const PATIENCE_MS = 20_000; await waitFor(look, Boolean, PATIENCE_MS);',
    'await waitFor(look, { timeoutMs: 2_000 });',
    'await page.locator(".row").waitFor({ timeout: 5_000 });',
    'async function waitForHit(n: number, timeoutMs = 10_000) {}',
    'const api = { waitForHit: (n: number, timeoutMs = 10_000) => wait(n, timeoutMs) };',
    'test("it answers", async () => {}, 20_000);',
    'it.each([1, 2])("it answers %i", async () => {}, 20_000);',
    'beforeAll(start, 10_000);',
    'jest.setTimeout(20_000);',
    'expect(await Promise.race([ended, sleep(10_000, "still open")])).toBe("ended");',
    'const late = new Promise((resolve) => setTimeout(resolve, 5_000)); await Promise.race([ended, late]);',
    'const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error("late")), 5_000); }); await Promise.race([ended, late]);',
  ].map(refused('narrow')),
  valid: [
    'await waitFor(look, Boolean, 30_000);',
    'await waitFor(look, (seen) => seen === 3);',
    'await waitForRequest(id, 2);',
    'test("it answers", async () => {}, 120_000);',
    'run(tool, { timeoutMs: 300 });',
    'await Promise.race([ended, sleep(60_000)]);',
    'await Promise.race([reached, ended]);',
  ],
});

const compares = 'if (Date.now() > deadline) throw new Error("late");';
tester.run('no-wall-clock: its excuse', rule, {
  invalid: [
    [`// clock: fine\n${compares}`, 'reason'],
    [`// clock:\n${compares}`, 'reason'],
    [`// clock: only a hang meets this bound\n\n${compares}`, 'idle', 'compared'],
    ['// clock: only a hang meets this bound\nexpect(looks).toBeLessThan(12);', 'idle'],
  ].map(([code = '', ...ids]) => ({ name: code, code, errors: ids.map((messageId) => ({ messageId })) })),
  valid: [
    `// clock: only a hang meets this bound\n${compares}`,
    `// clock: only a hang meets this bound, which\n// is a minute\n${compares}`,
    'const late = () =>\n  // clock: only a hang meets this bound\n  Date.now() > deadline;',
    '// clock: that nothing comes can only be waited for\nawait Promise.race([\n  ended,\n  sleep(1_000),\n]);',
  ],
});
