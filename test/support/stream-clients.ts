/**
 * Unmodified clients of five protocols, each of which reads a part of an answer, leaves, and comes back: to the gateway that is there then.
 */
import { HttpAgent } from '@ag-ui/client';
import { DefaultChatTransport, readUIMessageStream, type UIMessage, type UIMessageChunk } from 'ai';
import OpenAI from 'openai';
import { taskName } from '../../src/gateway/a2a/task.js';
import { readResponseId } from '../../src/gateway/openai/responses.js';
import { artifactsAfter, clientOf } from '../gateway/a2a/a2a-client.js';
import { ask, beginToRead, Reader, TOKEN, type Asking } from './event-reader.js';

/** The address of the gateway that is there now. */
export type Where = () => string;

export interface StreamClient {
  /** Reads until there is a part of the answer, and leaves. */
  begin(): Promise<void>;
  /** Comes back once; true when it has the end. */
  comeBack(): Promise<boolean>;
  /** The text that it shows at the end. */
  final(): string;
  conversation(): string;
}

export const to =
  (where: Where): Asking =>
  (path, init) =>
    fetch(`${where()}${path}`, init);

export function eventClient(where: Where, id: string): StreamClient {
  const reader = new Reader();
  return {
    begin: () => beginToRead(to(where), id, reader),
    async comeBack() {
      await reader.follow(() => to(where), id);
      return true;
    },
    final() {
      expect(reader.ends).toHaveLength(1);
      expect(reader.drawn).toBe(reader.ends[0]);
      return reader.drawn;
    },
    conversation: () => id,
  };
}

/** `answer`: with which it has come to the end; a stream that breaks off looks like one that ends. */
export function chatClient(where: Where, chatId: string, answer: string): StreamClient {
  const transport = (): DefaultChatTransport<UIMessage> =>
    new DefaultChatTransport({ api: `${where()}/api/chat`, headers: { authorization: `Bearer ${TOKEN}` } });
  let last: UIMessage | undefined;
  const read = async (stream: ReadableStream<UIMessageChunk>, enough: (shown: string) => boolean): Promise<void> => {
    for await (const message of readUIMessageStream({ stream, terminateOnError: true })) {
      last = message;
      if (enough(shown())) break;
    }
  };
  const shown = (): string =>
    (last?.parts ?? [])
      .flatMap((part) => (part.type === 'text' && part.providerMetadata?.['perdura']?.['void'] !== true ? [part.text] : []))
      .join('');
  return {
    async begin() {
      const messages: UIMessage[] = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'count' }] }];
      const stream = await transport().sendMessages({
        chatId, messages, trigger: 'submit-message', messageId: undefined, abortSignal: undefined,
      }); // prettier-ignore
      await read(stream, (so) => so !== '');
    },
    async comeBack() {
      const stream = await transport().reconnectToStream({ chatId });
      if (stream !== null) await read(stream, () => false);
      // Nothing runs any more: a page has loaded what was said.
      else {
        const response = await ask(to(where), 'GET', `/v1/conversations/${chatId}/turns/turn_0001`, { accept: 'application/json' });
        const { text: said } = (await response.json()) as { text: string };
        last = { id: 'm2', role: 'assistant', parts: [{ type: 'text', text: said }] };
      }
      return shown() === answer;
    },
    final: shown,
    conversation: () => chatId,
  };
}

export function responsesClient(where: Where): StreamClient {
  const openai = (): OpenAI => new OpenAI({ apiKey: TOKEN, baseURL: `${where()}/v1`, maxRetries: 0 });
  const events: OpenAI.Responses.ResponseStreamEvent[] = [];
  let id = '';
  return {
    async begin() {
      for await (const event of await openai().responses.create({ model: 'default', input: 'count', stream: true })) {
        events.push(event);
        if (event.type === 'response.created') id = event.response.id;
        if (event.type === 'response.output_text.delta') break;
      }
    },
    async comeBack() {
      const after = events.at(-1)?.sequence_number ?? 0;
      for await (const event of await openai().responses.retrieve(id, { stream: true, starting_after: after })) events.push(event);
      return events.at(-1)?.type === 'response.completed';
    },
    final() {
      expect(events.map(({ sequence_number: n }) => n)).toEqual(events.map((_, at) => at));
      const last = events.at(-1);
      if (last?.type !== 'response.completed') return `ended with ${String(last?.type)}`;
      return last.response.output
        .flatMap((item) => (item.type === 'message' ? item.content : []))
        .map((part) => ('text' in part ? part.text : ''))
        .join('');
    },
    conversation: () => readResponseId(id, 'id').conversation,
  };
}

export function a2aClient(where: Where, contextId: string): StreamClient {
  const part = { content: { $case: 'text' as const, value: 'count' }, metadata: undefined, filename: '', mediaType: '' };
  const own = { messageId: 'm1', contextId, taskId: '', role: 1, parts: [part], metadata: undefined, extensions: [], referenceTaskIds: [] };
  const { task: id } = taskName(contextId, 'turn_0001');
  let final = '';
  return {
    async begin() {
      const client = await clientOf(where());
      for await (const { payload } of client.sendMessageStream({
        tenant: '',
        message: own,
        configuration: undefined,
        metadata: undefined,
      })) {
        if (payload?.$case === 'artifactUpdate') break;
      }
    },
    async comeBack() {
      const client = await clientOf(where());
      const events = [];
      // One that has ended is not subscribed to.
      const isRunning = (await client.getTask({ tenant: '', id })).status?.state === 2;
      if (isRunning) for await (const event of client.resubscribeTask({ tenant: '', id })) events.push(event);
      const { artifacts, status } = await client.getTask({ tenant: '', id });
      final = artifacts.map(({ parts }) => String(parts[0]?.content?.value)).join('');
      if (isRunning && status?.state === 3) expect(artifactsAfter(events)).toEqual([final]);
      return status?.state === 3;
    },
    final: () => final,
    conversation: () => contextId,
  };
}

export function aguiClient(where: Where, threadId: string): StreamClient {
  const agentOf = (): HttpAgent => {
    const agent = new HttpAgent({ url: `${where()}/agui`, threadId, headers: { authorization: `Bearer ${TOKEN}` } });
    agent.addMessage({ id: 'm1', role: 'user', content: 'count' });
    return agent;
  };
  const textOf = (agent: HttpAgent): string => agent.messages.map((one) => (one.role === 'assistant' ? String(one.content) : '')).join('');
  let final = '';
  return {
    async begin() {
      const agent = agentOf();
      const left = agent.runAgent({ runId: 'r1' }, { onTextMessageContentEvent: () => agent.abortRun() });
      await left.catch(() => undefined);
    },
    async comeBack() {
      const agent = agentOf();
      let isEnd = false;
      await agent.runAgent({ runId: 'r1' }, { onRunFinishedEvent: () => void (isEnd = true) });
      final = textOf(agent);
      return isEnd;
    },
    final: () => final,
    conversation: () => threadId,
  };
}
