/// <reference path="../../types/ms.d.ts" preserve="true" />
/**
 * `import … from 'perdura/testing'`: tests of your agents. A model that says what the test has written for it; conversations in memory,
 * in milliseconds and without a server; and the real thing, with a Temporal dev server.
 *
 * @packageDocumentation
 */

export { startInMemory } from './in-memory.js';
export type { InMemory, InMemoryOptions, TestApproval, TestConversation, TestToolCall } from './test-conversation.js';
export { startWithTemporal, type WithTemporal, type WithTemporalOptions } from './temporal-server.js';
export { startTemporalServer, type TestServer, type TestServerOptions } from './temporal-server.js';
export type { TestAgent, TestOptions } from './project.js';
export { callTool, callTools, createScriptedModel } from './scripted-model.js';
export type { ScriptedAnswer, ScriptedCall, ScriptedLine, ScriptedModel } from './scripted-model.js';
