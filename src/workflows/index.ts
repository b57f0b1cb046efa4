/** Entry of the workflow bundle. */
export { conversation, createConversation } from './conversation.js';
export { memory } from './memory.js';
export { memoryCare } from './memory-care.js';
