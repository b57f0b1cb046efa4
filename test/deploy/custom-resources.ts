/**
 * Shapes of the resources that are not Kubernetes' own, in so far as the chart writes them: by the definitions of Temporal's worker controller
 * 1.8 (temporal.io/v1alpha1) and of KEDA 2.22 (keda.sh/v1alpha1). A pod template in one is Kubernetes', and checked as such.
 */
import type { JsonObject } from '../../src/records/message.js';

const name = { type: 'string', pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' };
const strict = (properties: JsonObject, required: string[] = Object.keys(properties)): JsonObject => ({
  ...{ type: 'object', additionalProperties: false, properties, required },
});
const duration = { type: 'string', pattern: '^([0-9]+(ms|s|m|h))+$' };
const step = strict({ rampPercentage: { type: 'integer', minimum: 1, maximum: 99 }, pauseDuration: duration });

const SPECS: Readonly<Record<string, JsonObject>> = {
  Connection: {
    ...strict(
      {
        hostPort: { type: 'string', pattern: '^[a-zA-Z0-9.-]+:[0-9]+$' },
        tls: strict({ serverName: { type: 'string', pattern: '^[a-zA-Z0-9.-]+$' } }, []),
        mutualTLSSecretRef: strict({ name }),
        apiKeySecretRef: strict({ name: { type: 'string' }, key: { type: 'string' }, optional: { type: 'boolean' } }, ['key']),
      },
      ['hostPort'],
    ),
    not: { required: ['mutualTLSSecretRef', 'apiKeySecretRef'] },
  },
  WorkerDeployment: strict(
    {
      replicas: { type: 'integer' },
      minReadySeconds: { type: 'integer' },
      progressDeadlineSeconds: { type: 'integer' },
      workerOptions: strict({ connectionRef: strict({ name }), temporalNamespace: { type: 'string', minLength: 1 } }),
      rollout: {
        ...strict(
          {
            strategy: { enum: ['Manual', 'AllAtOnce', 'Progressive'] },
            steps: { type: 'array', maxItems: 20, items: step },
            gate: { type: 'object' },
          },
          ['strategy'],
        ),
        if: { properties: { strategy: { const: 'Progressive' } } },
        then: { required: ['steps'], properties: { steps: { minItems: 1 } } },
      },
      sunset: strict({ scaledownDelay: duration, deleteDelay: duration }, []),
      template: { type: 'object' },
    },
    ['rollout', 'sunset', 'template', 'workerOptions'],
  ),
  WorkerResourceTemplate: strict({
    workerDeploymentRef: strict({ name }),
    // The controller names it, and leads it to each build.
    template: strict({ apiVersion: { type: 'string' }, kind: { type: 'string' }, spec: { type: 'object' } }),
  }),
  ScaledObject: strict(
    {
      scaleTargetRef: strict({ name: { type: 'string' }, kind: { type: 'string' }, apiVersion: { type: 'string' } }, ['name']),
      minReplicaCount: { type: 'integer' },
      maxReplicaCount: { type: 'integer' },
      pollingInterval: { type: 'integer' },
      advanced: strict({ horizontalPodAutoscalerConfig: strict({ behavior: { type: 'object' } }, []) }, []),
      triggers: {
        type: 'array',
        minItems: 1,
        items: {
          ...strict(
            {
              type: { enum: ['temporal', 'cpu'] },
              metricType: { enum: ['Utilization', 'AverageValue', 'Value'] },
              metadata: { type: 'object', additionalProperties: { type: 'string' } },
              authenticationRef: strict({ name: { type: 'string' } }),
            },
            ['type', 'metadata'],
          ),
          if: { properties: { type: { const: 'temporal' } } },
          then: {
            properties: {
              metadata: strict(
                {
                  endpoint: { type: 'string', pattern: '^[^:/]+:[0-9]+$' },
                  namespace: { type: 'string' },
                  taskQueue: { type: 'string', minLength: 1 },
                  queueTypes: { type: 'string', pattern: '^(workflow|activity|nexus)(,(workflow|activity|nexus))*$' },
                  targetQueueSize: { type: 'string', pattern: '^[0-9]+$' },
                },
                ['endpoint', 'taskQueue'],
              ),
            },
          },
        },
      },
    },
    ['scaleTargetRef', 'triggers'],
  ),
  TriggerAuthentication: strict({
    secretTargetRef: {
      type: 'array',
      minItems: 1,
      items: strict({ parameter: { type: 'string' }, name: { type: 'string' }, key: { type: 'string' } }),
    },
  }),
};

const VERSIONS: Readonly<Record<string, string>> = { ScaledObject: 'keda.sh/v1alpha1', TriggerAuthentication: 'keda.sh/v1alpha1' };

/** Undefined for a kind that Kubernetes has. */
export function shapeOf(kind: string): JsonObject | undefined {
  const spec = SPECS[kind];
  if (spec === undefined) return undefined;
  const apiVersion = { const: VERSIONS[kind] ?? 'temporal.io/v1alpha1' };
  return strict({ apiVersion, kind: { const: kind }, metadata: { type: 'object', required: ['name'] }, spec });
}
