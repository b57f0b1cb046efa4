/** Entry of the workflow bundle. */
export { conversation } from './conversation.js';
