/** Entry of the workflow bundle. */
export { conversation } from './conversation.js';
export { memory } from './memory.js';
