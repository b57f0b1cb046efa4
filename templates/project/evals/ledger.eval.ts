import { callTool, defineEval } from 'perdura/evals';

/** `npm run eval`. With `-- --model anthropic/claude-sonnet-5-5` a real model answers in place of the script. */
export default defineEval({
  script: [callTool('book_expense', { what: 'tea', cents: 350 }), 'Booked: tea for 3.50.'],
  tools: { book_expense: 'Booked tea. The total is 3.50.' },
  async run({ send, expect }) {
    const turn = await send('I had tea for 3.50.');
    expect(turn).calledTool('book_expense', { cents: 350 });
    expect.soft(turn).text(/3\.50/);
  },
});
