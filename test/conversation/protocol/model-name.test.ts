/** Which names of models a conversation takes, at its start and by `setModel`. */
import { readModelChoice, readStart } from '../../../src/conversation/protocol/input.js';

test.each([
  'anthropic/claude-sonnet-5-5',
  'openai/meta-llama/llama-3.3-70b:free',
  'ollama/hf.co/bartowski/Qwen-GGUF:Q4_K_M',
  `a/${'x'.repeat(128)}`,
])('is taken: %s', (model) => {
  expect(readModelChoice({ model })).toEqual({ ok: true, value: model });
  expect(readStart({ model })).toMatchObject({ ok: true, value: { model } });
});

test.each([
  ...['', 'claude', '/x', 'anthropic/', 'anthropic/x y', `a/${'x'.repeat(129)}`],
  ...['anthropic/\u001b[31mred', 'anthropic/\u202ered', 'anthropic/\u0000', 'anthropic/\ud800', 'anthrópic/x', '\u200banthropic/x'],
  ...['gemini/../../v1/x', 'gemini/x/..', 'gemini/./x'],
])('is refused: %j', (model) => {
  expect(readModelChoice({ model })).toMatchObject({ ok: false });
  expect(readStart({ model })).toMatchObject({ ok: false });
});
