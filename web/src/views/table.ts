/** The views, in the order in which they are offered. Each is a folder here whose `index.tsx` has it as its default; loaded when first shown. */
import type { ComponentType } from 'preact';
import type { Me } from '../session.js';
import type { IconName } from '../ui/icon.js';

export interface ViewProps {
  /** What the address names: a conversation, a scope, an agent; may be empty. */
  readonly of: string;
}

export type ViewModule = { readonly default: ComponentType<ViewProps> };

export interface View {
  readonly name: string;
  readonly title: string;
  readonly icon: IconName;
  /** Of one conversation: shown beside the list of them, under its title. */
  readonly isOfConversation: boolean;
  /** Who may; default: everybody. */
  readonly role?: Me['role'];
}

const VIEWS: readonly View[] = [
  { name: 'chat', title: 'Chat', icon: 'chat', isOfConversation: true },
  { name: 'timeline', title: 'Timeline', icon: 'timeline', isOfConversation: true },
  { name: 'context', title: 'Context', icon: 'context', isOfConversation: true },
  { name: 'stepper', title: 'Stepper', icon: 'stepper', isOfConversation: true, role: 'operator' },
  { name: 'manage', title: 'Manage', icon: 'more', isOfConversation: true },
  { name: 'inbox', title: 'Inbox', icon: 'inbox', isOfConversation: false },
  { name: 'memory', title: 'Memory', icon: 'memory', isOfConversation: false, role: 'operator' },
  { name: 'fleet', title: 'Fleet', icon: 'fleet', isOfConversation: false },
  { name: 'agents', title: 'Agents', icon: 'agents', isOfConversation: false },
  { name: 'whatif', title: 'What if', icon: 'branch', isOfConversation: false },
];

const modules = import.meta.glob<ViewModule>('./*/index.tsx');

export const views: readonly View[] = VIEWS.filter(({ name }) => `./${name}/index.tsx` in modules);

export function loadView(name: string): Promise<ViewModule> {
  const load = modules[`./${name}/index.tsx`];
  return load === undefined ? Promise.reject(new Error(`there is no view ${name}`)) : load();
}
