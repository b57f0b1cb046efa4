/**
 * Conversations for clients of the Agent Client Protocol (editors): a session is a conversation, a prompt is a message. What waits for a
 * person becomes a permission request. A client that ends, and loads the session again, misses nothing.
 */
import { randomUUID } from 'node:crypto';
import { isAbsolute } from 'node:path';
import type { AgentApp, AgentContext, ContentBlock, McpServer, PromptResponse, SessionMode } from '@agentclientprotocol/sdk' with {
  'resolution-mode': 'import',
};
import { ClientError, type Pending } from '../../client.js';
import { CONVERSATION_PATTERN, type Message } from '../../conversation/protocol/contract.js';
import { withoutPrefix } from '../../conversation/protocol/message.js';
import { pickMedia, type ClientTool, type JsonValue, type Media } from '../../records/message.js';
import { turnStream } from '../core/turn-stream.js';
import { describeClientWait, toAnswer } from '../core/client-calls.js';
import { withAnsweredFiles } from '../core/page-requests.js';
import type { Conversations } from '../core/conversations.js';
import { GatewayError, invalid } from '../core/errors.js';
import { END_PATIENCE_MS } from '../../client/turns/turn-status.js';
import { timeoutSignal } from '../../platform/promises.js';
import { errorMessage } from '../../platform/errors.js';
import { toMedia, withAttachments, type SuppliedFile } from '../core/attachments.js';
import { createUpdates, toPromptStop, toReplay, toolKind } from './updates.js';

interface AcpOptions {
  readonly conversations: Conversations;
  readonly version: string;
  /** Whom new sessions talk to; default: the agent named default. */
  readonly agent?: string;
  readonly log?: (line: string) => void;
  /** Begins the MCP servers that an editor brings to a session, in this process; throws, in words, for what is none. */
  readonly openServers?: (servers: readonly McpServer[], folder: string) => SessionServers;
}

/** Files beside the text reach models that take them. */
type ServerAnswer = Media & { readonly output: string; readonly isError: boolean };

/** Tools of those servers: the conversation has them as a client's. */
interface SessionServers {
  readonly offer: () => Promise<readonly ClientTool[]>;
  readonly has: (name: string) => boolean;
  readonly why: (name: string, input: JsonValue) => Promise<string | undefined>;
  readonly call: (name: string, input: JsonValue, signal: AbortSignal) => Promise<ServerAnswer>;
  readonly close: () => Promise<void>;
}

/** What this process knows of a session; the conversation itself is the server's. */
interface Session {
  mode: Mode;
  servers?: SessionServers;
  /** Tools of the editor's servers that a person has allowed for the rest of the session. */
  readonly allowed: Set<string>;
}

/** Who answers what waits for a permission. No mode gives what a person decides each time. */
type Mode = (typeof MODES)[number]['id'];
const MODES = [
  { id: 'ask', name: 'Ask', description: 'You are asked for each permission that the agent needs.' },
  { id: 'allow', name: 'Allow', description: 'Permissions are given without asking, but for those that need you each time.' },
  { id: 'refuse', name: 'Refuse', description: 'What needs a permission is refused: the agent does only what it may do without.' },
] as const satisfies readonly SessionMode[];
const PAGE = 50;
const MAX_SESSIONS = 1_000;
const REFUSED = 'the mode of the session refuses what needs a permission';

const ALLOW = 'allow';
const ALWAYS = 'always';
const REFUSE = 'refuse';

export async function createAcpAgent({
  conversations,
  version,
  agent: name,
  log = () => undefined,
  openServers,
}: AcpOptions): Promise<AgentApp> {
  const { agent, methods, PROTOCOL_VERSION, RequestError } = await import('@agentclientprotocol/sdk');
  const { client } = conversations;
  /** Sessions whose prompt was cancelled, perhaps before its turn began. */
  const cancelled = new Set<string>();
  const sessions = new Map<string, Session>();
  const findSession = (id: string): Session => {
    const known = sessions.get(id) ?? { mode: 'ask', allowed: new Set() };
    sessions.set(id, known);
    return known;
  };

  const begin = async (servers: readonly McpServer[], folder: string): Promise<SessionServers | undefined> => {
    if (servers.length === 0) return undefined;
    if (!isAbsolute(folder)) throw invalid(`cwd must be an absolute path: ${JSON.stringify(folder.slice(0, 200))} is none`);
    try {
      return openServers?.(servers, folder);
    } catch (error) {
      throw invalid(`mcpServers: ${errorMessage(error)}`);
    }
  };
  /** Those of an earlier load end. */
  const place = (id: string, servers: SessionServers | undefined) => {
    const session = findSession(id);
    void session.servers?.close();
    if (servers) session.servers = servers;
    else delete session.servers;
    return { modes: { currentModeId: session.mode, availableModes: [...MODES] } };
  };

  const leave = async (id: string, why: string): Promise<void> => {
    cancelled.add(id);
    await client.interrupt(id, why).catch(unlessClosed);
    void sessions.get(id)?.servers?.close();
    sessions.delete(id);
  };

  /** Turns errors into errors of the protocol; unforeseen ones too. */
  const withProtocolErrors = async <T>(sessionId: string, act: () => Promise<T>): Promise<T> => {
    try {
      return await act();
    } catch (error) {
      if (error instanceof GatewayError && error.problem.status < 500) throw RequestError.invalidParams(undefined, error.message);
      if (!(error instanceof ClientError)) throw error;
      if (error.kind === 'not-found') throw RequestError.sessionNotFound(sessionId);
      throw error.kind === 'invalid' || error.kind === 'conflict'
        ? RequestError.invalidParams(undefined, error.message)
        : RequestError.internalError(undefined, error.message);
    }
  };

  const askPermission = async (peer: AgentContext, sessionId: string, approval: Pending, signal: AbortSignal): Promise<void> => {
    const { mode } = findSession(sessionId);
    const at = { callId: approval.callId, ...(approval.conversation !== sessionId && { conversation: approval.conversation }) };
    if (mode === 'refuse') return void (await client.decide(sessionId, { ...at, decision: 'deny', note: REFUSED }));
    if (mode === 'allow' && approval.mayAlways) {
      return void (await client.decide(sessionId, { ...at, hash: approval.hash, decision: 'approve' }));
    }
    const { outcome } = await peer.request(
      methods.client.session.requestPermission,
      {
        sessionId,
        toolCall: {
          toolCallId: approval.callId,
          title: `${withoutPrefix(approval.tool)} ${approval.target}`.trim(),
          kind: toolKind(approval.tool),
          rawInput: approval.arguments,
        },
        options: [
          { optionId: ALLOW, name: 'Allow', kind: 'allow_once' },
          ...(approval.mayAlways ? [{ optionId: ALWAYS, name: 'Allow this very call from now on', kind: 'allow_always' as const }] : []),
          { optionId: REFUSE, name: 'Refuse', kind: 'reject_once' },
        ],
      },
      { cancellationSignal: signal },
    );
    if (outcome.outcome !== 'selected') return;
    await client.decide(sessionId, {
      ...at,
      hash: approval.hash,
      decision: outcome.optionId === ALLOW || outcome.optionId === ALWAYS ? 'approve' : 'deny',
      ...(outcome.optionId === ALWAYS && { always: true }),
    });
  };

  /** Whether a tool of the editor's servers may run, as its person decides, or has decided. */
  const mayCall = async (peer: AgentContext, sessionId: string, call: Pending, signal: AbortSignal): Promise<boolean> => {
    const session = findSession(sessionId);
    const tool = withoutPrefix(call.tool);
    const why = await session.servers?.why(tool, call.arguments ?? {});
    if (session.mode === 'refuse') return false;
    if (why === undefined && (session.mode === 'allow' || session.allowed.has(tool))) return true;
    const { outcome } = await peer.request(
      methods.client.session.requestPermission,
      {
        sessionId,
        toolCall: {
          toolCallId: call.callId,
          title: `${tool} ${call.target}`.trim(),
          kind: toolKind(call.tool),
          rawInput: call.arguments,
          ...(why !== undefined && { content: [{ type: 'content' as const, content: { type: 'text' as const, text: why } }] }),
        },
        options: [
          { optionId: ALLOW, name: 'Allow', kind: 'allow_once' },
          ...(why === undefined ? [{ optionId: ALWAYS, name: `Allow ${tool} in this session`, kind: 'allow_always' as const }] : []),
          { optionId: REFUSE, name: 'Refuse', kind: 'reject_once' },
        ],
      },
      { cancellationSignal: signal },
    );
    if (outcome.outcome === 'selected' && outcome.optionId === ALWAYS && why === undefined) session.allowed.add(tool);
    return outcome.outcome === 'selected' && (outcome.optionId === ALLOW || outcome.optionId === ALWAYS);
  };

  /** A call of the editor's servers: decided, made here, and answered to the conversation that waits for it. */
  const makeCall = async (peer: AgentContext, sessionId: string, call: Pending, signal: AbortSignal): Promise<void> => {
    const { callId, hash } = call;
    const tool = withoutPrefix(call.tool);
    const update = { toolCallId: callId, title: tool, kind: toolKind(call.tool), rawInput: call.arguments };
    const show = (status: 'pending' | 'in_progress'): Promise<void> =>
      peer.notify(methods.client.session.update, {
        sessionId,
        update:
          status === 'pending'
            ? { sessionUpdate: 'tool_call', ...update, status }
            : { sessionUpdate: 'tool_call_update', toolCallId: callId, status },
      });
    await show('pending');
    if (!(await mayCall(peer, sessionId, call, signal))) {
      await client.decide(sessionId, { callId, hash, decision: 'deny', note: 'its person did not allow the call' });
      return;
    }
    await show('in_progress');
    const { servers } = findSession(sessionId);
    const isReadable = servers !== undefined && call.arguments !== undefined && !call.altered;
    const answered: ServerAnswer = isReadable
      ? await servers.call(tool, call.arguments, signal)
      : { output: 'Not run: its arguments are not in the store as they were called. Call it again.', isError: true };
    // One that was stopped has been answered by the interrupt.
    if (signal.aborted) return;
    const { isError } = answered;
    const media = pickMedia(answered);
    const files = withAnsweredFiles([{ callId, name: tool, media }]);
    if (files) await client.enqueue(sessionId, { ...(await withAttachments(client, sessionId, files)), delivery: 'steer' });
    const { output } = toAnswer({ id: callId, output: answered.output, isError, media });
    await client.decide(sessionId, { callId, hash, decision: 'approve', output, ...(isError && { isError }) });
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
    const { servers } = findSession(sessionId);
    const isOurs = ({ kind, tool, conversation }: Pending): boolean =>
      kind === 'client-tool' && conversation === sessionId && servers?.has(withoutPrefix(tool)) === true;
    const askWhatWaits = async (): Promise<void> => {
      for (const approval of await client.approvals(sessionId)) {
        const id = approval.kind + approval.hash + approval.callId;
        if ((approval.kind !== 'approval' && !isOurs(approval)) || isAsked.has(id)) continue;
        isAsked.add(id);
        const work = approval.kind === 'approval' ? askPermission : makeCall;
        // A person takes time: the turn is followed meanwhile, and may be decided elsewhere.
        work(peer, sessionId, approval, signal).catch((error: unknown) => {
          if (!signal.aborted) log(`the decision on ${approval.callId} of ${sessionId} was not taken: ${String(error)}`);
        });
      }
    };
    const tellsClientWait = async (): Promise<boolean> => {
      const words = describeClientWait(
        sessionId,
        (await client.approvals(sessionId)).filter((one) => !isOurs(one)),
      );
      if (words === undefined) return false;
      const content = { type: 'text' as const, text: words };
      await peer.notify(methods.client.session.update, { sessionId, update: { sessionUpdate: 'agent_message_chunk', content } });
      return true;
    };
    try {
      const tools = await servers?.offer();
      const question = (await client.approvals(sessionId)).find(({ kind }) => kind === 'question');
      // The prompt would wait behind a call that this client cannot answer; `refusal` is the protocol's word for a prompt that was not taken.
      if (!question && (await tellsClientWait())) return { stopReason: 'refusal' };
      const text = readText(blocks);
      const { turn, live } = question
        ? await answerTo(sessionId, question, text, signal)
        : await sent(sessionId, { ...toMessage(blocks, text), ...(tools && tools.length > 0 && { tools }) }, signal, askWhatWaits);
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
          if (change.kind === 'asked' && change.what === 'client-tool') {
            await askWhatWaits();
            if (await tellsClientWait()) return { stopReason: 'end_turn' };
          }
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

  /** What an earlier turn waits for, in whose place this message would wait, is seen to first. */
  const sent = async (id: string, message: Message & { readonly id: string }, signal: AbortSignal, askWhatWaits: () => Promise<void>) => {
    await askWhatWaits();
    const taken = await conversations.submit(id, message, { signal });
    return { turn: taken.turn, live: conversations.answer(taken, signal) };
  };

  return agent({ name: 'perdura' })
    .onRequest(methods.agent.initialize, () => ({
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: 'perdura', version },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, embeddedContext: true },
        mcpCapabilities: { http: openServers !== undefined, sse: false },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
      },
      authMethods: [],
    }))
    .onRequest(methods.agent.session.new, ({ params: { cwd, mcpServers } }) =>
      withProtocolErrors('new', async () => {
        const servers = await begin(mcpServers, cwd);
        const { id } = await client.start(undefined, name === undefined ? {} : { agent: name });
        return { sessionId: id, ...place(id, servers) };
      }),
    )
    .onRequest(methods.agent.session.load, ({ params: { sessionId, cwd, mcpServers }, client: peer }) =>
      withProtocolErrors(sessionId, async () => {
        const entries = await client.history(sessionId);
        const servers = await begin(mcpServers, cwd);
        for (const entry of entries) {
          for (const update of toReplay(entry)) await peer.notify(methods.client.session.update, { sessionId, update });
        }
        return place(sessionId, servers);
      }),
    )
    .onRequest(methods.agent.session.resume, ({ params: { sessionId, cwd, mcpServers = [] } }) =>
      withProtocolErrors(sessionId, async () => {
        await client.describe(sessionId);
        return place(sessionId, await begin(mcpServers, cwd));
      }),
    )
    .onRequest(methods.agent.session.list, ({ params: { cwd, cursor } }) =>
      withProtocolErrors('list', async () => {
        const from = cursor === undefined || cursor === null ? 0 : Number(cursor);
        if (!Number.isSafeInteger(from) || from < 0 || from > MAX_SESSIONS) throw invalid('the cursor is none of session/list');
        const listed = await client.list({ limit: from + PAGE + 1, where: ({ id }) => CONVERSATION_PATTERN.test(id) });
        return {
          // A conversation belongs to no folder: it is shown in the one that the editor asks from.
          sessions: listed.slice(from, from + PAGE).map(({ id, title, startedAt, closedAt }) => ({
            sessionId: id,
            cwd: cwd ?? process.cwd(),
            title,
            updatedAt: (closedAt ?? startedAt).toISOString(),
          })),
          ...(listed.length > from + PAGE && from + PAGE <= MAX_SESSIONS && { nextCursor: String(from + PAGE) }),
        };
      }),
    )
    .onRequest(methods.agent.session.setMode, ({ params: { sessionId, modeId } }) =>
      withProtocolErrors(sessionId, async () => {
        const mode = MODES.find(({ id }) => id === modeId);
        if (!mode)
          throw invalid(`there is no mode ${JSON.stringify(modeId.slice(0, 100))}; there are: ${MODES.map(({ id }) => id).join(', ')}`);
        if (!sessions.has(sessionId)) await client.describe(sessionId);
        findSession(sessionId).mode = mode.id;
        return {};
      }),
    )
    .onRequest(methods.agent.session.close, ({ params: { sessionId } }) =>
      withProtocolErrors(sessionId, async () => {
        // What it does now stops, as the protocol has it; the conversation stays, to be loaded again.
        await leave(sessionId, 'its session was closed');
        return {};
      }),
    )
    .onRequest(methods.agent.session.delete, ({ params: { sessionId } }) =>
      withProtocolErrors(sessionId, async () => {
        await leave(sessionId, 'its session was deleted');
        await client.closeConversation(sessionId, { memory: false }).catch(unlessClosed);
        // One that has not ended by then is refused below, in words.
        await client.outcome(sessionId, { signal: timeoutSignal(END_PATIENCE_MS) }).catch(() => undefined);
        await client.deleteConversation(sessionId);
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

/** One that has ended does nothing. */
function unlessClosed(error: unknown): void {
  if (!(error instanceof ClientError && error.kind === 'closed')) throw error;
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
