/**
 * Conversations for clients of the Agent Client Protocol (editors): a session is a conversation, a prompt is a message. What waits for a
 * person becomes a permission request. A client that ends, and loads the session again, misses nothing.
 */
import { randomUUID } from 'node:crypto';
import type { AgentApp, AgentContext, ContentBlock, PromptResponse } from '@agentclientprotocol/sdk' with { 'resolution-mode': 'import' };
import { ClientError, type Pending } from '../../client.js';
import type { Message } from '../../conversation/protocol/contract.js';
import { turnStream } from '../core/turn-stream.js';
import { describeClientWait } from '../core/client-calls.js';
import type { Conversations } from '../core/conversations.js';
import { GatewayError, invalid } from '../core/errors.js';
import { toMedia, type SuppliedFile } from '../core/attachments.js';
import { createUpdates, toPromptStop, toReplay } from './updates.js';

interface AcpOptions {
  readonly conversations: Conversations;
  readonly version: string;
  /** Whom new sessions talk to; default: the agent named default. */
  readonly agent?: string;
  readonly log?: (line: string) => void;
}

const ALLOW = 'allow';
const ALWAYS = 'always';
const REFUSE = 'refuse';

export async function createAcpAgent({ conversations, version, agent: name, log = () => undefined }: AcpOptions): Promise<AgentApp> {
  const { agent, methods, PROTOCOL_VERSION, RequestError } = await import('@agentclientprotocol/sdk');
  const { client } = conversations;
  /** Sessions whose prompt was cancelled, perhaps before its turn began. */
  const cancelled = new Set<string>();

  /** Turns errors into errors of the protocol; unforeseen ones too. */
  const withProtocolErrors = async <T>(sessionId: string, act: () => Promise<T>): Promise<T> => {
    try {
      return await act();
    } catch (error) {
      if (error instanceof GatewayError && error.problem.status < 500) throw RequestError.invalidParams(undefined, error.message);
      if (!(error instanceof ClientError)) throw error;
      if (error.kind === 'not-found') throw RequestError.sessionNotFound(sessionId);
      throw error.kind === 'invalid'
        ? RequestError.invalidParams(undefined, error.message)
        : RequestError.internalError(undefined, error.message);
    }
  };

  const askPermission = async (peer: AgentContext, sessionId: string, approval: Pending, signal: AbortSignal): Promise<void> => {
    const { outcome } = await peer.request(
      methods.client.session.requestPermission,
      {
        sessionId,
        toolCall: { toolCallId: approval.callId, title: `${approval.tool} ${approval.target}`.trim(), rawInput: approval.arguments },
        options: [
          { optionId: ALLOW, name: 'Allow', kind: 'allow_once' },
          ...(approval.mayAlways ? [{ optionId: ALWAYS, name: 'Allow this very call from now on', kind: 'allow_always' as const }] : []),
          { optionId: REFUSE, name: 'Refuse', kind: 'reject_once' },
        ],
      },
      { cancellationSignal: signal },
    );
    if (outcome.outcome !== 'selected') return;
    const { callId, hash, conversation } = approval;
    await client.decide(sessionId, {
      callId,
      hash,
      ...(conversation !== sessionId && { conversation }),
      decision: outcome.optionId === ALLOW || outcome.optionId === ALWAYS ? 'approve' : 'deny',
      ...(outcome.optionId === ALWAYS && { always: true }),
    });
  };

  const prompt = async (
    sessionId: string,
    blocks: readonly ContentBlock[],
    peer: AgentContext,
    gone: AbortSignal,
  ): Promise<PromptResponse> => {
    cancelled.delete(sessionId);
    const ended = new AbortController();
    const signal = AbortSignal.any([gone, ended.signal]);
    const isAsked = new Set<string>();
    const askWhatWaits = async (): Promise<void> => {
      for (const approval of await client.approvals(sessionId)) {
        if (approval.kind !== 'approval' || isAsked.has(approval.hash + approval.callId)) continue;
        isAsked.add(approval.hash + approval.callId);
        // A person takes time: the turn is followed meanwhile, and may be decided elsewhere.
        askPermission(peer, sessionId, approval, signal).catch((error: unknown) => {
          if (!signal.aborted) log(`the decision on ${approval.callId} of ${sessionId} was not taken: ${String(error)}`);
        });
      }
    };
    const tellsClientWait = async (): Promise<boolean> => {
      const words = describeClientWait(sessionId, await client.approvals(sessionId));
      if (words === undefined) return false;
      const content = { type: 'text' as const, text: words };
      await peer.notify(methods.client.session.update, { sessionId, update: { sessionUpdate: 'agent_message_chunk', content } });
      return true;
    };
    try {
      const question = (await client.approvals(sessionId)).find(({ kind }) => kind === 'question');
      // The prompt would wait behind a call that this client cannot answer; `refusal` is the protocol's word for a prompt that was not taken.
      if (!question && (await tellsClientWait())) return { stopReason: 'refusal' };
      const text = readText(blocks);
      const { turn, live } = question
        ? await answerTo(sessionId, question, text, signal)
        : await sent(sessionId, toMessage(blocks, text), signal);
      if (cancelled.has(sessionId)) await client.interrupt(sessionId, 'by its client');
      await askWhatWaits();
      const updates = createUpdates(turn ?? 'reset');
      for await (const { changes } of turnStream(live)) {
        for (const change of changes) {
          for (const update of updates.take(change)) await peer.notify(methods.client.session.update, { sessionId, update });
          if (change.kind === 'asked' && change.what === 'approval') await askWhatWaits();
          // A question is answered by the next prompt.
          if (change.kind === 'asked' && change.what === 'question') {
            const content = { type: 'text' as const, text: change.target };
            await peer.notify(methods.client.session.update, { sessionId, update: { sessionUpdate: 'agent_message_chunk', content } });
            return { stopReason: 'end_turn' };
          }
          if (change.kind === 'asked' && change.what === 'client-tool' && (await tellsClientWait())) return { stopReason: 'end_turn' };
          if (change.kind !== 'finished') continue;
          const stopReason = toPromptStop(change.result);
          if (stopReason !== undefined) return { stopReason };
          throw RequestError.internalError(undefined, change.result.error?.message ?? 'the turn failed');
        }
      }
      return { stopReason: 'cancelled' };
    } finally {
      ended.abort();
    }
  };

  /** The turn that waits goes on with the answer. */
  const answerTo = async (id: string, { callId, hash, conversation, turnId: turn }: Pending, note: string, signal: AbortSignal) => {
    const after = await client.newestCursor(id);
    await client.decide(id, { callId, hash, decision: 'approve', note, ...(conversation !== id && { conversation }) });
    return { turn, live: conversations.attach({ id, turn, after, signal }) };
  };

  const sent = async (id: string, message: Message & { readonly id: string }, signal: AbortSignal) => {
    const taken = await conversations.submit(id, message, { signal });
    return { turn: taken.turn, live: conversations.answer(taken, signal) };
  };

  return agent({ name: 'perdura' })
    .onRequest(methods.agent.initialize, () => ({
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: 'perdura', version },
      agentCapabilities: { loadSession: true, promptCapabilities: { image: true, embeddedContext: true } },
      authMethods: [],
    }))
    .onRequest(methods.agent.session.new, async () => {
      const { id } = await withProtocolErrors('new', () => client.start(undefined, name === undefined ? {} : { agent: name }));
      return { sessionId: id };
    })
    .onRequest(methods.agent.session.load, ({ params: { sessionId }, client: peer }) =>
      withProtocolErrors(sessionId, async () => {
        for (const entry of await client.history(sessionId)) {
          for (const update of toReplay(entry)) await peer.notify(methods.client.session.update, { sessionId, update });
        }
        return {};
      }),
    )
    .onRequest(methods.agent.session.prompt, ({ params: { sessionId, prompt: blocks }, client: peer, signal }) =>
      withProtocolErrors(sessionId, () => prompt(sessionId, blocks, peer, signal)),
    )
    .onNotification(methods.agent.session.cancel, async ({ params: { sessionId } }) => {
      cancelled.add(sessionId);
      await client.interrupt(sessionId, 'by its client').catch((error: unknown) => log(`cannot stop ${sessionId}: ${String(error)}`));
    });
}

function toMessage(blocks: readonly ContentBlock[], text: string): Message & { readonly id: string } {
  const files = blocks.flatMap((block): SuppliedFile[] => {
    if (block.type === 'image') return [{ mediaType: block.mimeType, url: `data:;base64,${block.data}` }];
    if (block.type === 'audio') throw invalid('sound is not taken here: send words, pictures, PDF or text files');
    return block.type === 'resource' ? [readResource(block.resource)] : [];
  });
  return { id: randomUUID(), text, ...toMedia(files) };
}

/** A file of the editor whose content is in the prompt itself. */
function readResource(resource: Extract<ContentBlock, { type: 'resource' }>['resource']): SuppliedFile {
  const base64 = 'blob' in resource ? resource.blob : Buffer.from(resource.text, 'utf8').toString('base64');
  return { mediaType: '', url: `data:;base64,${base64}`, name: resource.uri.slice(0, MAX_NAME) };
}

const MAX_NAME = 500;

function readText(blocks: readonly ContentBlock[]): string {
  return blocks
    .flatMap((block) => {
      if (block.type === 'text') return [block.text];
      return block.type === 'resource_link' ? [`[${block.name}](${block.uri})`] : [];
    })
    .join('\n');
}
