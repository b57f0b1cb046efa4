/** Whether a run takes what it was handed: decided once, at its first task, and kept in history whatever keys later workers have. */
import { sealProblemOf } from '../conversation/protocol/state-seal.js';
import type { Host } from './host.js';

const PATCH = 'refused-for-its-seal';

/** Why this run must end; undefined where it goes on, also where it began before the workers had a key. */
export function refusedSeal(host: Host, argument: object): string | undefined {
  const problem = sealProblemOf(argument);
  // On replay history alone knows; a first task with nothing to refuse leaves no mark there.
  const isRefused = (problem !== undefined || host.isReplaying()) && host.patched(PATCH);
  return isRefused ? (problem ?? 'its signature was refused') : undefined;
}
