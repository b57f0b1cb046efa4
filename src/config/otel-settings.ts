/** OpenTelemetry's settings, `OTEL_*`: its SDK reads them, and passes over a wrong value in silence or with a word in its log. */

export interface OtelSettings {
  readonly env: Readonly<Record<string, string>>;
  /** Contents of messages may be in the spans. */
  readonly captureContent: boolean;
}

/** Any of these asks for OpenTelemetry; the other `OTEL_*` say how. */
const WISHES = [
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
  'OTEL_TRACES_EXPORTER',
  'OTEL_METRICS_EXPORTER',
];
const CAPTURE = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT';

/** Undefined: nothing asks for it. */
export function readOtelSettings(all: Readonly<Record<string, string | undefined>>): OtelSettings | undefined {
  const env = Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => /^OTEL_/.test(entry[0]) && !!entry[1]));
  const isWished = WISHES.some((name) => env[name] !== undefined && env[name] !== 'none');
  if (!isWished || env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return undefined;
  const captureContent = ['true', 'span_only', 'span_and_event'].includes(env[CAPTURE]?.toLowerCase() ?? '');
  return Object.freeze({ env: Object.freeze(env), captureContent });
}

/** What its SDK is to find in the environment, where that says nothing else. */
export function offeredSettings({ env }: OtelSettings, version: string): Readonly<Record<string, string>> {
  const { OTEL_RESOURCE_ATTRIBUTES: attributes = '' } = env;
  const versioned = /(^|,)\s*service\.version=/.test(attributes) ? [] : [`service.version=${version}`];
  return {
    ...(!/(^|,)\s*service\.name=/.test(attributes) && { OTEL_SERVICE_NAME: 'perdura' }),
    // Newer SDKs would send to places that were not named.
    ...(env['OTEL_EXPORTER_OTLP_METRICS_ENDPOINT'] === undefined && { OTEL_METRICS_EXPORTER: 'none' }),
    OTEL_LOGS_EXPORTER: 'none',
    ...env,
    OTEL_RESOURCE_ATTRIBUTES: [...(attributes === '' ? [] : [attributes]), ...versioned].join(','),
  };
}

/** What its values may be, by their names; others are the SDK's alone to judge. */
interface Rule {
  readonly of: RegExp;
  readonly must: string;
  readonly isRight: (value: string) => boolean;
}

const SIGNAL = '(?:_TRACES|_METRICS|_LOGS)?';

const RULES: readonly Rule[] = [
  words(/^OTEL_(TRACES|LOGS)_EXPORTER$/, ['otlp', 'console', 'zipkin', 'none']),
  words(/^OTEL_METRICS_EXPORTER$/, ['otlp', 'console', 'prometheus', 'none']),
  word(new RegExp(`^OTEL_EXPORTER_OTLP${SIGNAL}_PROTOCOL$`), ['grpc', 'http/protobuf', 'http/json']),
  word(new RegExp(`^OTEL_EXPORTER_OTLP${SIGNAL}_COMPRESSION$`), ['gzip', 'none']),
  {
    of: new RegExp(`^OTEL_EXPORTER_OTLP${SIGNAL}_ENDPOINT$`),
    must: 'an address that begins with http:// or https://, such as http://127.0.0.1:4318',
    isRight: (value) => /^https?:\/\/[^\s/]/.test(value) && URL.canParse(value),
  },
  {
    of: new RegExp(`^(OTEL_EXPORTER_OTLP${SIGNAL}_HEADERS|OTEL_RESOURCE_ATTRIBUTES)$`),
    must: 'pairs such as name=value,name=value, percent-encoded',
    isRight: (value) => value.split(',').every((pair) => pair.trim() === '' || /^\s*[^=\s]+\s*=/.test(pair)),
  },
  word(/^OTEL_TRACES_SAMPLER$/, [
    'always_on',
    'always_off',
    'traceidratio',
    'parentbased_always_on',
    'parentbased_always_off',
    'parentbased_traceidratio',
  ]),
  {
    of: /^OTEL_TRACES_SAMPLER_ARG$/,
    must: 'a number from 0 to 1',
    isRight: (value) => value.trim() !== '' && Number(value) >= 0 && Number(value) <= 1,
  },
  {
    of: new RegExp(`^OTEL_(EXPORTER_OTLP${SIGNAL}_TIMEOUT|(BSP|BLRP|METRIC_EXPORT|SPAN|ATTRIBUTE|EVENT|LINK|LOGRECORD)_[A-Z_]+)$`),
    must: 'a whole number that is not negative',
    isRight: (value) => /^\s*\d{1,15}\s*$/.test(value),
  },
  word(/^OTEL_LOG_LEVEL$/, ['none', 'error', 'warn', 'info', 'debug', 'verbose', 'all']),
  words(/^OTEL_PROPAGATORS$/, ['tracecontext', 'baggage', 'b3', 'b3multi', 'jaeger', 'xray', 'ottrace', 'none']),
  word(/^OTEL_SDK_DISABLED$/, ['true', 'false']),
  word(new RegExp(`^${CAPTURE}$`), ['true', 'false', 'span_only', 'span_and_event', 'event_only', 'no_content']),
];

/** @internal A sentence for each value that cannot be meant so; of a header, without its value. */
export function otelProblems({ env }: OtelSettings): readonly string[] {
  return Object.entries(env).flatMap(([name, value]) => {
    const rule = RULES.find(({ of }) => of.test(name));
    if (!rule || rule.isRight(value)) return [];
    const shown = name.endsWith('_HEADERS') || /\/\/[^/]*@/.test(value) ? '' : ` ${JSON.stringify(value.slice(0, 100))}, and`;
    return [`${name} is${shown} ${shown === '' ? 'wrong: it ' : ''}must be ${rule.must}`];
  });
}

function word(of: RegExp, known: readonly string[]): Rule {
  return { of, must: `one of ${known.join(', ')}`, isRight: (value) => known.includes(value.trim().toLowerCase()) };
}

function words(of: RegExp, known: readonly string[]): Rule {
  const isRight = (value: string): boolean => value.split(',').every((one) => known.includes(one.trim().toLowerCase()));
  return { of, must: `one or more of ${known.join(', ')}`, isRight };
}
