import { fitting } from '../../src/activities/context/context.js';
import { estimateStringTokens } from '../../src/memory/tokens.js';
import { tokenCounterBy } from '../../src/models/token-counter.js';
import { answer, user } from '../memory/builders.js';

jest.mock('@temporalio/activity', () => ({ log: { warn: () => undefined } }));

/** 300 characters: 75 by estimate, about 200 to a tokenizer. */
const CHINESE = '今天天气很好，我们去公园散步吧。'.repeat(19);

test.each([undefined, 'o200k_base'])(
  'a text that takes more tokens than Latin letters do is left out, counted by %s',
  async (tokenizer) => {
    const messages = [user(CHINESE), answer('好'), user('and now?')];
    const { count } = await tokenCounterBy(tokenizer);
    expect(fitting(messages, 400, count)).toBe(messages);
    const [notice, ...left] = fitting(messages, 120, count);
    expect(notice).toMatchObject({ text: expect.stringContaining('2 earlier messages are left out') });
    expect(left).toEqual([messages[2]]);
    // What it was all about is said with it, unless it stands before the messages.
    expect(notice).toMatchObject({ text: expect.stringContaining('\n\n[TASK]\nThe session began with: 今天天气很好') });
    const base = [user('[MEMORY:EPISODIC]\n1) They met.\n\n[TASK]\nGoal: go out')];
    expect(fitting(messages, 120, count, base)[0]).not.toMatchObject({ text: expect.stringContaining('[TASK]') });
  },
);

test('an earlier message that is too long is shown by its ends, and what stands before it stays', () => {
  const paste = `BEGIN ${'x'.repeat(400_000)} END`;
  const messages = [user('the goal is to mend the boat'), answer('ok'), user(paste), user('what is the goal?')];
  const fits = fitting(messages, 2_000, estimateStringTokens);
  expect(fits).toHaveLength(4);
  expect(fits[0]).toBe(messages[0]);
  expect(fits[3]).toBe(messages[3]);
  expect(fits[2]).toMatchObject({
    text: expect.stringMatching(/^BEGIN x+\n\[… 398\d+ of 400010 characters of this message are left out here.*\n.* END$/s),
  });
  expect(() => fitting([user('a'), user(paste)], 2_000, estimateStringTokens)).toThrow(expect.objectContaining({ kind: 'too-large' }));
});
