/**
 * Whole prompts after a fork, a resume and a model switch, as the provider gets them, as golden/NAME.txt has them: see golden.slow.test.ts.
 * Days and ids are those of the run, so each stands as DATE and ID.
 */
import { callTools, text } from '../support/provider-apis/reply.js';
import { blocksOf, lastUserText, systemText, textOf, type ApiBlock, type ApiRequest } from '../support/provider-apis/api-request.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';
import { expectGolden } from './expect-golden.js';

let world: World;

beforeAll(async () => {
  world = await startWorld({
    engine: 'memory',
    agent: {
      tools: ['read_file'],
      memory: { memoryWindow: 8, keepCount: 2 },
      context: { advanced: { softThreshold: 600, hardThreshold: 30_000, truncationThreshold: 40_000 } },
    },
    files: { 'notes.txt': 'Tabs stay.' },
    answer: (request) => {
      const last = lastUserText(request);
      return /^read (\S+)/.test(last)
        ? callTools({ name: 'read_file', input: { path: 'notes.txt' } })
        : text(`OK. ${'Noted. '.repeat(80)}`);
    },
    aside(request) {
      const prompt = request.messages.map(({ content }) => textOf(content)).join('\n');
      return prompt.includes('You are a memory consolidation agent') ? text(JSON.stringify(consolidated(prompt))) : undefined;
    },
  });
});

afterAll(() => world.close());

function consolidated(question: string): object {
  const remarks = [...new Set([...question.matchAll(/remark (\d+)/g)].map(([, n]) => n))].join(', ');
  return {
    history_entry: `[2026-11-20 09:30] Remarks ${remarks} were made.`,
    memory_update: '- The harbour is spoken of.',
    ...(question.includes('"handover"') && {
      handover: {
        goal: 'Hear remarks about the harbour.',
        summary: `Remarks ${remarks} were made; notes.txt says that tabs stay.`,
        open_tasks: [],
      },
    }),
  };
}

/** Long enough that its first turns have left the prompt. */
async function began(): Promise<string> {
  const id = world.id();
  await world.client.start(id);
  await world.client.send(id, 'Hi there! Let us speak of the harbour.');
  await world.client.send(id, 'read notes.txt');
  for (let n = 3; n <= 12; n++) {
    await world.client.send(id, `This is remark ${n} about the harbour.`);
    // What is consolidated by then is the same in each run.
    await waitFor(
      () => world.client.status(id),
      ({ window }) => window.consolidating === 0,
    );
  }
  return id;
}

function lastPrompt(): string {
  const request = world.api.hits
    .map(({ body }) => body)
    .findLast((body) => body !== undefined && lastUserText(body).includes('What did I say last?'));
  return request ? shown(request) : '(none)';
}

function shown(request: ApiRequest): string {
  const whole = [
    `== model\n${request.model}`,
    `== system\n${systemText(request)}`,
    ...request.messages.map(({ role, content }) => `== ${role}\n${blocksOf(content).map(blockText).join('\n')}`),
    '',
  ].join('\n');
  return (
    whole
      .replace(/(Noted\. ){4,}/g, 'Noted. (…)')
      .replace(/\d{4}-\d\d-\d\d(T[\d:.]+Z| \d\d:\d\d)?/g, 'DATE')
      // Past midnight.
      .replace(/DATE–DATE/g, 'DATE')
      .replace(/\b(c|conv)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')
  );
}

function blockText(block: ApiBlock): string {
  if (block.type === 'text') return block.text;
  if (block.type === 'tool_use') return `(${block.name} ${JSON.stringify(block.input)})`;
  return block.type === 'tool_result' ? `(result) ${blocksOf(block.content).map(blockText).join('\n')}` : `(${block.type})`;
}

test('a fork, in the middle of what its origin said', async () => {
  const { id } = await world.client.fork(await began(), { at: 'turn_0006' });
  await world.client.send(id, 'What did I say last?');
  expectGolden('after-fork', lastPrompt());
});

test('a resume, of a conversation that was closed', async () => {
  const id = await began();
  await world.client.terminate(id);
  await world.client.resume(id);
  await world.client.send(id, 'What did I say last?');
  expectGolden('after-resume', lastPrompt());
});

test('another model', async () => {
  const id = await began();
  await world.client.setModel(id, 'anthropic/claude-other');
  await world.client.send(id, 'What did I say last?');
  expectGolden('after-model-switch', lastPrompt());
});
