/**
 * How what one run hands to the next is sealed, where the worker has a key: the workflow marks the argument, the worker signs it on its way
 * out and checks it on its way in (extensions/state-codec.ts). The key never enters the sandbox, and no history has it.
 */

/** Marks the argument that a run makes for the next. No JSON can bring a symbol along. */
const HANDED_OVER = Symbol('handed over');
const UNSEALED = Symbol('unsealed');

/** In the payload's metadata: to be signed, and then the signature. */
export const SEAL = 'perdura-seal';
/** In the payload's metadata, by a worker with a key alone: why this is no state that a worker has signed. */
export const SEAL_PROBLEM = 'perdura-seal-problem';

export function handedOver<Argument extends object>(argument: Argument): Argument {
  return Object.defineProperty(argument, HANDED_OVER, { value: true });
}

export function isHandedOver(value: unknown): boolean {
  return typeof value === 'object' && value !== null && HANDED_OVER in value;
}

/** Notes on an argument that carries a state what the worker found about its seal. */
export function withSealProblem<Value>(value: Value, problem: string): Value {
  return typeof value === 'object' && value !== null && 'carried' in value
    ? Object.defineProperty(value, UNSEALED, { value: problem })
    : value;
}

/** Why the worker does not accept it as handed over by an earlier run; undefined where nothing is wrong, or nothing was checked. */
export function sealProblemOf(argument: object): string | undefined {
  return UNSEALED in argument ? String(argument[UNSEALED]) : undefined;
}
