/**
 * What happens to a conversation, told to the worker: for observers, and for replays that rebuild what a store has lost. One way:
 * nothing comes back, and on replay the worker decides whether to listen.
 */
import { proxySinks } from '@temporalio/workflow';
import type { ConversationListener } from '../conversation/views/observation.js';

type ConversationSinks = { readonly conversation: ConversationListener };

export const { conversation: observer } = proxySinks<ConversationSinks>();
