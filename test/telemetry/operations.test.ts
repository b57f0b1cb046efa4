/** What docs/operations gives to Grafana and Prometheus names only metrics that there are, with labels that they have. */
import { createRequire } from 'node:module';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';

const ROOT = join(__dirname, '..', '..');
const read = (...path: string[]): string => readFileSync(join(ROOT, ...path), 'utf8');

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}
const { panels } = JSON.parse(read('docs', 'operations', 'grafana-dashboard.json')) as { readonly panels: readonly Panel[] };
const { groups } = parse(read('docs', 'operations', 'prometheus-alerts.yml')) as {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[];
};
const queries = [
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const)),
  ...groups.flatMap(({ rules }) => rules.map(({ alert, expr }) => [alert, expr] as const)),
];

const SOURCES = [
  ['telemetry', 'metrics.ts'],
  ['telemetry', 'worker-health.ts'],
  ['telemetry', 'observability.ts'],
  ['gateway', 'app.ts'],
];
const ours = new Set(SOURCES.flatMap((path) => read('src', ...path).match(/'perdura_[a-z_]+'/g) ?? []).map((name) => name.slice(1, -1)));

/** The names of the SDK's metrics stand in its library alone, without their prefix. */
function isOfSdk(name: string): boolean {
  const releases = join(
    dirname(createRequire(require.resolve('@temporalio/worker')).resolve('@temporalio/core-bridge/package.json')),
    'releases',
  );
  const [first = ''] = readdirSync(releases).filter((platform) => platform.includes('linux'));
  sdk ??= readFileSync(join(releases, first, 'index.node'));
  return sdk.includes(name.replace(/^temporal_/, ''));
}
let sdk: Buffer | undefined;

function metricsIn(query: string): string[] {
  return (query.match(/\b(perdura|temporal)_[a-z_]+/g) ?? []).map((name) => name.replace(/_bucket$/, ''));
}

test('there are queries of both kinds of metrics in both files', () => {
  expect(panels.filter(({ targets }) => targets).length).toBeGreaterThan(15);
  expect(groups.flatMap(({ rules }) => rules).length).toBeGreaterThan(8);
  expect(new Set(queries.flatMap(([, query]) => metricsIn(query).map((name) => name.split('_')[0])))).toEqual(
    new Set(['perdura', 'temporal']),
  );
});

test.each(queries)('%s: %s', (_title, query) => {
  const names = metricsIn(query);
  expect(names).not.toEqual([]);
  expect(names.filter((name) => (name.startsWith('perdura_') ? !ours.has(name) : !isOfSdk(name)))).toEqual([]);
});

test('every metric of ours is on the dashboard', () => {
  const shown = new Set(panels.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => metricsIn(expr))));
  expect([...ours].filter((name) => !shown.has(name))).toEqual([]);
});

test('no panel lies on another one, and each has an id', () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
});
