/** What receives OTLP over HTTP with JSON: a real endpoint for exporters, which keeps what it is sent. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

export interface ReceivedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code?: number };
  readonly attributes: Readonly<Record<string, unknown>>;
}

export interface OtlpReceiver {
  readonly url: string;
  readonly spans: ReceivedSpan[];
  /** Name and attributes of every data point. */
  readonly points: { readonly metric: string; readonly attributes: Readonly<Record<string, unknown>>; readonly sum?: number }[];
  readonly headers: (string | undefined)[];
  /** All that was sent, as text. */
  text(): string;
  close(): Promise<void>;
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const bodies: unknown[] = [];
  const spans: ReceivedSpan[] = [];
  const points: OtlpReceiver['points'] = [];
  const headers: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    void json(request).then((body) => {
      headers.push(request.headers['x-otlp-key'] as string | undefined);
      bodies.push(body);
      spans.push(...spansIn(body as SentSpans));
      points.push(...pointsIn(body as SentMetrics));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    points,
    headers,
    text: () => JSON.stringify(bodies),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function plain(attributes: readonly Attribute[] = []): Record<string, unknown> {
  const valueOf = (value: Attribute['value']): unknown => {
    const [[kind, given] = ['', undefined]] = Object.entries(value);
    if (kind === 'arrayValue') return ((given as { values?: Attribute['value'][] }).values ?? []).map(valueOf);
    return kind === 'intValue' ? Number(given) : given;
  };
  return Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]));
}

interface SentSpans {
  readonly resourceSpans?: readonly {
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ReceivedSpan, 'attributes'> & { readonly attributes: readonly Attribute[] })[];
    }[];
  }[];
}

interface SentMetrics {
  readonly resourceMetrics?: readonly {
    readonly scopeMetrics: readonly {
      readonly metrics: readonly {
        readonly name: string;
        readonly histogram?: { readonly dataPoints: readonly { readonly attributes: readonly Attribute[]; readonly sum?: number }[] };
      }[];
    }[];
  }[];
}

function spansIn({ resourceSpans = [] }: SentSpans): ReceivedSpan[] {
  const spans = resourceSpans.flatMap(({ scopeSpans }) => scopeSpans).flatMap((scope) => scope.spans);
  return spans.map((span) => ({ ...span, attributes: plain(span.attributes) }));
}

function pointsIn({ resourceMetrics = [] }: SentMetrics): OtlpReceiver['points'] {
  const metrics = resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics).flatMap((scope) => scope.metrics);
  return metrics.flatMap(({ name, histogram }) =>
    (histogram?.dataPoints ?? []).map(({ attributes, sum }) => ({
      metric: name,
      attributes: plain(attributes),
      ...(sum === undefined ? {} : { sum }),
    })),
  );
}
