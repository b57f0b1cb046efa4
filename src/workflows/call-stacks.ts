/**
 * Loaded before the sandbox is sealed. The SDK notes for each promise where it was made, for the query `__stack_trace`, and looks every
 * frame up in a source map: a sixth of what a turn costs. A conversation is one loop that waits, so its stacks say nothing; what it waits
 * for is `status`. Two frames are the SDK's, and no lookup; of an error they still say where it was thrown.
 */
Error.stackTraceLimit = 2;
