/** One conversation for the golden tests of all renderers: what it becomes is to be read in each. */
import type { AssistantBlock, ConversationMessage } from '../../src/records/message.js';
import type { ModelRequest } from '../../src/models/model.js';
import { call, request, result, says, thinking, user } from './builders.js';

const readFile = {
  name: 'read_file',
  description: 'Reads a file.',
  inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
};

/** What the provider keeps of its own. */
export interface Opaque {
  readonly beforeText?: AssistantBlock;
  readonly afterText?: AssistantBlock;
  readonly beforeCall?: AssistantBlock;
}

export function goldenRequest(model: string, { beforeText, afterText, beforeCall }: Opaque = {}): ModelRequest {
  return request({
    model,
    tools: [readFile],
    messages: [
      { ...user('What is in these?'), images: [{ mediaType: 'image/png', base64: 'aGk=' }] },
      says(
        thinking('I should look.', 'somebody'),
        ...(beforeText ? [beforeText] : []),
        'Let me look.',
        ...(afterText ? [afterText] : []),
        ...(beforeCall ? [beforeCall] : []),
        call('turn_0001/c1', 'read_file', { path: 'a.txt' }),
        call('turn_0001/c2', 'read_file', { path: 'b.txt' }),
      ),
      result('turn_0001/c1', 'hello'),
      result('turn_0001/c2', 'no such file', 'error'),
      user('And?'),
      says('One is not there.'),
      user('Thanks.'),
    ],
  });
}

/** Everything that can go wrong with a message, made fit by hand: renderers trust `normalize` for the rest. */
export const oddMessages: readonly ConversationMessage[] = [
  {
    ...user('look'),
    images: [
      { mediaType: 'image/jpeg', url: 'https://example.org/a.jpg' },
      { mediaType: 'image/bmp', base64: 'aGk=' },
      { mediaType: 'image/png', url: 'file:///etc/passwd' },
      { mediaType: 'image/png', ref: 'body/7' },
    ],
  },
  says(
    call('t/c', 'read file!', [1]),
    call('t_c', '9lives', { ref: 'body/1', sha256: 's', bytes: 9, preview: '{"a' }),
    call(`${'x'.repeat(60)}`),
  ),
  result('t/c', 'why', 'rejected', 'read file!'),
  result('t_c', ' ', 'unknown', '9lives'),
  result('x'.repeat(60), 'half \ud83d', 'cancelled'),
];
