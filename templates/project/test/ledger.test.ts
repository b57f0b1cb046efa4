import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callTool, createScriptedModel, startInMemory } from 'perdura/testing';

test('an expense is booked, and the total is the one of the tool', async () => {
  // The model says these lines, one each time it is asked. The agent, its prompt and the tool are the real ones of this project.
  const model = createScriptedModel([callTool('book_expense', { what: 'tea', cents: 350 }), 'Booked 3.50 for tea; the total is 3.50.']);
  const perdura = await startInMemory({ model });
  const chat = perdura.start({ agent: 'default' });

  const { text, stopReason } = await chat.send('I had tea for 3.50.');

  assert.equal(stopReason, 'end');
  assert.match(text, /total is 3\.50/);
  const [call] = await chat.toolCalls();
  assert.equal(call?.outcome, 'ok');
  assert.equal(call?.result, 'Booked tea. The total is 3.50.');
  await perdura.close();
});

test('an expense without a price is not booked', async () => {
  const model = createScriptedModel([callTool('book_expense', { what: 'tea' }), 'What did it cost?']);
  const perdura = await startInMemory({ model });
  const chat = perdura.start({ agent: 'default' });

  await chat.send('I had tea.');

  const [call] = await chat.toolCalls();
  assert.equal(call?.outcome, 'error');
  assert.match(call?.result ?? '', /cents/);
  await perdura.close();
});
