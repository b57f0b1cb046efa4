/** The three that are a workflow of their own: bare, and the two integrations of Temporal's SDK. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client, Connection, WithStartWorkflowOperation } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';

const usage = {
  inputTokens: { total: 100, noCache: 100, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 80, text: 80, reasoning: 0 },
};

export async function open({ name, address, workload }) {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const plugins = await PLUGINS[name](workload);
  const connection = await NativeConnection.connect({ address });
  const taskQueue = 'agents';
  const worker = await Worker.create({
    connection,
    taskQueue,
    workflowsPath: fileURLToPath(new URL(`./workflows/${name}.mjs`, import.meta.url)),
    activities: {
      lookup: (input) => workload.tool(input),
      callModel: (messages) => workload.model(JSON.stringify(messages), messages.at(-1).role === 'tool'),
    },
    plugins,
    bundlerOptions: {
      logger: new DefaultLogger('ERROR'),
      // `ai` and the agents have builds for Node that a workflow's sandbox does not take.
      webpackConfigHook: (config) => ({ ...config, resolve: { ...config.resolve, conditionNames: ['require', 'browser', 'default'] } }),
    },
  });
  const running = worker.run();
  const client = new Client({ connection: await Connection.connect({ address }), plugins });
  const ask = (id, text) =>
    client.workflow.executeUpdateWithStart('turn', {
      args: [text],
      updateId: /\d+/.exec(text)[0],
      startWorkflowOperation: new WithStartWorkflowOperation('chat', {
        workflowId: id,
        taskQueue,
        args: [],
        workflowIdConflictPolicy: 'USE_EXISTING',
      }),
    });
  // The same update id is the same update: what met the end of a run, or a server that is busy, is asked again.
  const turn = async (id, text, tries = 5) => {
    try {
      return await ask(id, text);
    } catch (error) {
      if (tries === 1 || !isWorthAnotherTry(error)) throw error;
      await sleep(200);
      return turn(id, text, tries - 1);
    }
  };
  return {
    turn,
    resume: turn,
    storedBytes: async () => 0,
    async close() {
      worker.shutdown();
      await running;
    },
  };
}

function isWorthAnotherTry({ cause, message }) {
  const words = `${message} ${cause?.message ?? ''}`;
  return /UNAVAILABLE|ABORTED|DEADLINE_EXCEEDED|already completed|completed before|not found/i.test(words);
}

const PLUGINS = {
  temporal: async () => [],
  'temporal-ai-sdk': async (workload) => {
    const { AiSdkPlugin } = await import('@temporalio/ai-sdk');
    const model = {
      specificationVersion: 'v4',
      provider: 'scripted',
      modelId: 'scripted',
      supportedUrls: {},
      async doGenerate({ prompt }) {
        const { text, call } = await workload.model(JSON.stringify(prompt), prompt.at(-1).role === 'tool');
        const reason = call ? 'tool-calls' : 'stop';
        const content = call
          ? { type: 'tool-call', toolCallId: call.id, toolName: call.name, input: JSON.stringify(call.input) }
          : { type: 'text', text };
        return { content: [content], finishReason: { unified: reason, raw: reason }, usage, warnings: [] };
      },
      doStream: () => Promise.reject(new Error('not asked for')),
    };
    const none = () => {
      throw new Error('not asked for');
    };
    return [
      new AiSdkPlugin({
        modelProvider: { specificationVersion: 'v4', languageModel: () => model, embeddingModel: none, imageModel: none },
      }),
    ];
  },
  'temporal-openai-agents': async (workload) => {
    const { OpenAIAgentsPlugin } = await import('@temporalio/openai-agents');
    const { Usage } = await import('@openai/agents-core');
    const model = {
      async getResponse({ input }) {
        const isAfterTool = Array.isArray(input) && input.at(-1)?.type === 'function_call_result';
        const { text, call } = await workload.model(JSON.stringify(input), isAfterTool);
        const output = call
          ? { type: 'function_call', name: call.name, arguments: JSON.stringify(call.input), callId: call.id, status: 'completed' }
          : { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }], status: 'completed' };
        return { usage: new Usage({ requests: 1, inputTokens: 100, outputTokens: 80, totalTokens: 180 }), output: [output] };
      },
      async *getStreamedResponse() {
        throw new Error('not asked for');
      },
    };
    return [new OpenAIAgentsPlugin({ modelProvider: { getModel: () => model }, modelParams: { startToCloseTimeout: '60s' } })];
  },
};
