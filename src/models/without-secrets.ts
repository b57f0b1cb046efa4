/**
 * Models whose answers have none of the secrets that this worker knows: neither the blocks, nor their pieces as they come, nor the words
 * of a failure, by which a provider may tell one of another's. All that is kept of an answer is made of what leaves here, so it is taken
 * out once: for the ledger, the store, the feed, summaries, memory and Temporal's history.
 */
import { createKnownSecrets, type KnownSecrets } from '../platform/known-secrets.js';
import type { AssistantBlock } from '../records/message.js';
import type { Models } from './known-models.js';
import {
  ModelFailure,
  ModelInterrupted,
  withStream,
  type Model,
  type ModelDelta,
  type ModelResponse,
  type StreamOptions,
} from './model.js';

export function modelsWithoutSecrets(models: Models, secrets: KnownSecrets = createKnownSecrets()): Models {
  return Object.assign((name: string) => withoutSecrets(models(name), secrets), { limits: models.limits });
}

function withoutSecrets(model: Model, secrets: KnownSecrets): Model {
  return withStream(model, async (request, options) => {
    const live = createLive(options.onDelta, secrets);
    try {
      const response = await model.stream(request, { ...options, onDelta: live.take });
      live.flush();
      return cleanResponse(response, secrets);
    } catch (error) {
      live.flush();
      throw cleanError(error, secrets);
    }
  });
}

/** Pieces as they come, each of a text or of thinking; the end of one waits while it may be the beginning of a secret. */
function createLive(onDelta: StreamOptions['onDelta'], secrets: KnownSecrets) {
  const followed = secrets.follow();
  let kind: 'text' | 'thinking' = 'text';
  const pass = (text: string): void => (text === '' ? undefined : onDelta({ kind, text }));
  const flush = (): void => pass(followed.end());
  const take = (delta: ModelDelta): void => {
    if (delta.kind === 'tool-call') {
      flush();
      onDelta(secrets.redactIn(delta));
      return;
    }
    if (delta.kind !== kind) flush();
    kind = delta.kind;
    pass(followed.push(delta.text));
  };
  return { take, flush };
}

function cleanResponse(response: ModelResponse, secrets: KnownSecrets): ModelResponse {
  return { ...response, blocks: cleanBlocks(response.blocks, secrets) };
}

function cleanBlocks(blocks: readonly AssistantBlock[], secrets: KnownSecrets): AssistantBlock[] {
  return blocks.flatMap((block): AssistantBlock[] => {
    const clean = secrets.redactIn(block);
    if (clean === block) return [block];
    // Its maker signed what it was, and takes nothing else back.
    if (clean.kind === 'opaque') return [];
    if (clean.kind !== 'thinking') return [clean];
    const { signature: _, ...unsigned } = clean;
    return [unsigned];
  });
}

function cleanError(error: unknown, secrets: KnownSecrets): unknown {
  if (error instanceof ModelInterrupted) return new ModelInterrupted(cleanBlocks(error.blocks, secrets), error.usage);
  if (!(error instanceof ModelFailure)) return error;
  const { kind, message, options } = error;
  return new ModelFailure(kind, secrets.redact(message), {
    ...options,
    ...(options.cause !== undefined && { cause: cleanCause(options.cause, secrets) }),
  });
}

function cleanCause(cause: unknown, secrets: KnownSecrets): unknown {
  if (!(cause instanceof Error)) return secrets.redactIn(cause);
  const clean = new Error(secrets.redact(cause.message));
  clean.name = cause.name;
  clean.stack = secrets.redact(cause.stack ?? '');
  return clean;
}
