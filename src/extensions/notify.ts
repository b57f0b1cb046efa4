/**
 * Notifies the receivers in the settings that a person is waited for: a program of the worker's machine, an address, or both.
 *
 * A notice holds words of a model. The program gets them on stdin, never as arguments and never through a shell, and of our
 * environment only what is listed here. Failures name the setting, not its value: an address may be a secret.
 */
import { spawn } from 'node:child_process';
import type { Notice, Notify } from '../activities/dependencies.js';
import { postJson, refusalIn } from './post.js';
import { errorCode, errorMessage } from '../platform/errors.js';

export interface NotifySettings {
  /** Absolute path. */
  readonly command?: string;
  readonly url?: string;
  /** All that the program sees of the environment. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Milliseconds; tests shorten them. */
  readonly commandMs?: number;
  readonly urlMs?: number;
  /** Takes secrets out of what is sent to the address. */
  readonly redact?: (text: string) => string;
}

const COMMAND_MS = 10_000;
const URL_MS = 5_000;
const REMEMBERED = 1_000;

interface Channel {
  readonly name: 'PERDURA_NOTIFY_COMMAND' | 'PERDURA_NOTIFY_URL';
  readonly deliver: (body: string, signal: AbortSignal) => Promise<void>;
}

/** Undefined where no receiver is set. */
export function createNotify(settings: NotifySettings): Notify | undefined {
  const { command, url } = settings;
  const channels: Channel[] = [
    ...(command === undefined ? [] : [{ name: 'PERDURA_NOTIFY_COMMAND', deliver: toProgram(command, settings) } as const]),
    ...(url === undefined ? [] : [{ name: 'PERDURA_NOTIFY_URL', deliver: toAddress(url, settings) } as const]),
  ];
  if (channels.length === 0) return undefined;
  // Where one of two fails all is tried again: the other does not hear it twice.
  const notified = new Set<string>();
  return async (notices, signal) => {
    const body = JSON.stringify({ notices });
    const failures = await Promise.all(
      channels.map(async ({ name, deliver }): Promise<string[]> => {
        const key = `${name} ${notices.map(keyOf).join(' ')}`;
        if (notified.has(key)) return [];
        try {
          await deliver(body, signal);
        } catch (error) {
          return [`${name}: ${errorMessage(error)}`];
        }
        notified.add(key);
        for (const oldest of notified) if (notified.size > REMEMBERED) notified.delete(oldest);
        return [];
      }),
    );
    const failed = failures.flat();
    if (failed.length > 0) throw new Error(`cannot notify that a person is waited for: ${failed.join('; ')}`);
  };
}

/** Two tenants may call their conversations the same. */
function keyOf({ tenant = '', conversation, callId, expiresAt }: Notice): string {
  return `${tenant}/${conversation} ${callId} ${expiresAt}`;
}

/** In a process group of its own: at the limit its children go with it. */
function toProgram(command: string, { environment = {}, commandMs = COMMAND_MS }: NotifySettings): Channel['deliver'] {
  return (body, signal) =>
    new Promise((resolve, reject) => {
      const child = spawn(command, [], { env: { ...environment }, stdio: ['pipe', 'ignore', 'ignore'], detached: true, shell: false });
      const kill = (): void => {
        try {
          if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
        } catch {
          // It has ended just now.
        }
      };
      const give = (why: string): void => {
        kill();
        reject(new Error(why));
      };
      const onAbort = (): void => give('stopped');
      const timer = setTimeout(() => give(`the program did not end within ${commandMs} ms and was killed`), commandMs);
      signal.addEventListener('abort', onAbort, { once: true });
      const settle = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
      };
      child.on('error', (error) => {
        settle();
        reject(new Error(`the program cannot be run (${errorCode(error) ?? 'failed'})`));
      });
      child.on('exit', (code, killed) => {
        settle();
        if (code === 0) resolve();
        else reject(new Error(code === null ? `the program was ended by ${killed ?? 'a signal'}` : `the program ended with code ${code}`));
      });
      // A program need not read its input.
      child.stdin.on('error', () => undefined);
      child.stdin.end(body);
      if (signal.aborted) onAbort();
    });
}

function toAddress(url: string, { urlMs = URL_MS, redact = (text) => text }: NotifySettings): Channel['deliver'] {
  return async (body, signal) => {
    const refusal = refusalIn(await postJson(url, { body: redact(body), ms: urlMs, signal }));
    if (refusal !== undefined) throw new Error(refusal);
  };
}
