/** What is tried with clients of other people's, and what came of it. */

export interface ClientPlace {
  /** Of the gateway, such as `http://127.0.0.1:7280`. */
  readonly url: string;
  readonly token: string;
  /** What is installed for clients stays here from run to run. */
  readonly cacheDir: string;
  /** Bytes that the gateway holds. */
  memory(): Promise<number>;
  /**
   * For `act`, the model stops in the middle of its answer to a message with `ONE_BREATH` in it; then the worker is killed (SIGKILL), and
   * another one starts.
   */
  killedMeanwhile<T>(act: () => Promise<T>): Promise<T>;
}

/** In a message: the model answers it with SPOKEN, slowly. */
export const ONE_BREATH = 'in one breath';
export const SPOKEN = 'All of this is said in one breath, and it is long enough to be cut in two — 🦔.';

export interface Outcome {
  readonly check: string;
  /** `apart`: it asks for what is not there by design; `why` says what. */
  readonly result: 'passed' | 'failed' | 'apart';
  readonly why?: string;
}

export interface Suite {
  readonly name: string;
  /** With its version. */
  readonly client: string;
  run(place: ClientPlace): Promise<readonly Outcome[]>;
}

/** Something that a suite needs is not on this machine; the message says what, and how to get it. */
export class MissingProgram extends Error {}
