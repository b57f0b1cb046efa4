/**
 * OpenTelemetry's semantic conventions for generative AI: every name that we use of them. They are in development, and this is the
 * only file to change when they do.
 */
export const SPAN = { invokeAgent: 'invoke_agent', chat: 'chat', executeTool: 'execute_tool' } as const;

export const ATTRIBUTE = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  maxTokens: 'gen_ai.request.max_tokens',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  cachedTokens: 'gen_ai.usage.cache_read.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  conversation: 'gen_ai.conversation.id',
  agent: 'gen_ai.agent.name',
  toolName: 'gen_ai.tool.name',
  toolCallId: 'gen_ai.tool.call.id',
  toolType: 'gen_ai.tool.type',
  toolResult: 'gen_ai.tool.call.result',
  systemInstructions: 'gen_ai.system_instructions',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  tokenType: 'gen_ai.token.type',
  errorType: 'error.type',
  // Ours, where the conventions have none.
  turn: 'perdura.turn',
  life: 'perdura.life',
  stopReason: 'perdura.turn.stop_reason',
  toolCalls: 'perdura.turn.tool_calls',
  costUsd: 'perdura.cost_usd',
  attempt: 'perdura.attempt',
  outcome: 'perdura.tool.outcome',
  startUnknown: 'perdura.turn.start_unknown',
} as const;

export const METRIC = { tokens: 'gen_ai.client.token.usage', duration: 'gen_ai.client.operation.duration' } as const;

/** As the conventions give them. */
export const BUCKETS = {
  tokens: [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864],
  seconds: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
} as const;

const PROVIDERS: Readonly<Record<string, string>> = { 'openai-responses': 'openai', gemini: 'gcp.gemini' };

/** Of `provider/model`. */
export function providerOf(model: string): string {
  const ours = model.split('/', 1)[0] ?? '';
  return PROVIDERS[ours] ?? ours;
}

/** The provider's name of the model. */
export function modelOf(model: string): string {
  return model.slice(model.indexOf('/') + 1);
}
