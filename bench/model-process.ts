/** The model, in a process of its own so that its work is not the worker's: answers at once, by what the last message says. */
import { blocksOf, textOf, type ApiRequest } from '../test/support/provider-apis/api-request.js';
import { startMessagesApi } from '../test/support/provider-apis/messages-api.js';
import { callTool, text, type Reply } from '../test/support/provider-apis/reply.js';
import { ANSWER } from './bodies.js';
import { wishIn, type Wish } from './wish.js';

/** How long a streamed answer stands still after its first piece: longer than a reader needs to see it. */
const STAND_MS = 60;
const USAGE = { input_tokens: 1_234, output_tokens: 123 };

process.once('disconnect', () => process.exit());
void startMessagesApi({ strict: false, keepHits: false, answer }).then(({ url }) => process.send?.(url));

function answer(request: ApiRequest): Reply {
  const wish = latestWish(request);
  if (wish.kind === 'tool') return { ...callTool(wish.name, wish.input), ...INSTANT };
  return wish.kind === 'stream' ? streamed() : { ...text(ANSWER), ...INSTANT };
}

const INSTANT = { chunks: 1, usage: USAGE };

/** Its first piece says when it left. */
function streamed(): Reply {
  const stamp = `${process.hrtime.bigint()} `;
  const until = new Promise((resolve) => setTimeout(resolve, STAND_MS));
  return { text: stamp + ANSWER, chunks: { size: stamp.length, delayMs: 0 }, usage: USAGE, holdAfter: { chars: 1, until } };
}

function latestWish({ messages }: ApiRequest): Wish {
  const at = messages.findLastIndex((message) => message.role === 'user' && textOf(message.content) !== '');
  const calls = messages
    .slice(at + 1)
    .flatMap((message) => blocksOf(message.content))
    .filter((block) => block.type === 'tool_use').length;
  return wishIn(textOf(messages[at]?.content), calls);
}
