/** A receiver of webhooks over HTTP: checks signatures with the library that receivers use, and answers as it is scripted. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { webhookEvent, type WebhookEvent } from '../../src/records/webhooks/webhook-event.js';

export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

/** `hang`: no answer. */
export type Answer = number | 'hang' | { readonly status: number; readonly headers: Readonly<Record<string, string>> };

export interface Got {
  readonly id: string;
  readonly body: string;
  readonly event: WebhookEvent;
  readonly headers: IncomingHttpHeaders;
  readonly answered: Answer;
}

export interface Receiver {
  readonly url: string;
  /** In the order of their arrival; a body that is not signed, or not as the schema says, is among `refused`. */
  readonly got: Got[];
  readonly refused: string[];
  /** What the next posts are answered, in turn; then 204. */
  answer(...answers: readonly Answer[]): void;
  /** Of events that this holds for. */
  of(type: string): Got[];
  stop(): Promise<void>;
  /** On the port that it had. */
  restart(): Promise<void>;
}

export async function startReceiver(secret = SECRET): Promise<Receiver> {
  const got: Got[] = [];
  const refused: string[] = [];
  const script: Answer[] = [];
  const webhook = new Webhook(secret);
  const make = (): Server =>
    createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (piece: string) => (body += piece));
      request.on('end', () => {
        const { headers } = request;
        try {
          webhook.verify(body, headers as Record<string, string>);
          const event = webhookEvent.parse(JSON.parse(body));
          const answered = script.shift() ?? 204;
          got.push({ id: String(headers['webhook-id']), body, event, headers, answered });
          if (answered === 'hang') return;
          const { status, headers: more } = typeof answered === 'number' ? { status: answered, headers: {} } : answered;
          response.writeHead(status, more).end('x'.repeat(100_000));
        } catch (error) {
          refused.push(`${String(error)} of ${body}`);
          response.writeHead(401).end();
        }
      });
    });
  let server = make();
  await listen(server, 0);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hooks/secret-path`,
    got,
    refused,
    answer: (...answers) => void script.push(...answers),
    of: (type) => got.filter(({ event }) => event.type === type),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
    async restart() {
      server = make();
      await listen(server, port);
    },
  };
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
}
