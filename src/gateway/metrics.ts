/** What a gateway counts, for Prometheus. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

export interface GatewayMetrics {
  readonly contentType: string;
  /** Streams that are open now. */
  readonly streams: { inc(): void; dec(): void };
  request(method: string, route: string, status: number, seconds: number): void;
  text(): Promise<string>;
}

export function createMetrics(): GatewayMetrics {
  const registers = [new Registry()];
  const labelNames = ['method', 'route', 'status'] as const;
  const requests = new Counter({ name: 'perdura_gateway_requests_total', help: 'Requests answered', labelNames, registers });
  const seconds = new Histogram({
    name: 'perdura_gateway_request_seconds',
    help: 'Time until the answer began',
    labelNames: ['method', 'route'],
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 60],
    registers,
  });
  const streams = new Gauge({ name: 'perdura_gateway_open_streams', help: 'Streams that are open now', registers });
  return {
    contentType: registers[0]?.contentType ?? 'text/plain',
    streams: { inc: () => streams.inc(), dec: () => streams.dec() },
    request(method, route, status, took) {
      requests.inc({ method, route, status });
      seconds.observe({ method, route }, took);
    },
    text: async () => (await registers[0]?.metrics()) ?? '',
  };
}
