/** What the worker runs in place of Perdura's own entry: the same, with our reducers. */
import { createConversation } from 'perdura/workflows';
import { reducers } from './reducers.js';

export { memory, retention, webhook } from 'perdura/workflows';
export const conversation = createConversation({ reducers });
