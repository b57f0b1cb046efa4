{{/* Labels of everything; `part`: worker, gateway, or the name of workers of tools. */}}
{{- define "perdura.labels" -}}
{{ include "perdura.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- end }}

{{- define "perdura.selector" -}}
app.kubernetes.io/name: perdura
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "perdura.name" -}}
{{ printf "%s-%s" .root.Release.Name .part | trunc 47 | trimSuffix "-" }}
{{- end }}

{{- define "perdura.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{/* Of a pod that needs nothing of the cluster, and of its one container. 1000 is `node` in the image. */}}
{{- define "perdura.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "perdura.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* REDIS_URL by itself: a pod without it does not start, and says why, instead of keeping conversations in files of its own. */}}
{{- define "perdura.env" -}}
- name: REDIS_URL
  valueFrom: { secretKeyRef: { name: {{ .root.Values.secret }}, key: REDIS_URL } }
{{- if .temporal }}
- { name: TEMPORAL_ADDRESS, value: {{ .root.Values.temporal.address | quote }} }
- { name: TEMPORAL_NAMESPACE, value: {{ .root.Values.temporal.namespace | quote }} }
{{- if or .root.Values.temporal.tls .root.Values.temporal.clientCertificate }}
- { name: TEMPORAL_TLS, value: 'true' }
{{- end }}
{{- if .root.Values.temporal.clientCertificate }}
- { name: TEMPORAL_TLS_CLIENT_CERT_PATH, value: /etc/temporal/tls/tls.crt }
- { name: TEMPORAL_TLS_CLIENT_KEY_PATH, value: /etc/temporal/tls/tls.key }
{{- end }}
{{- end }}
{{- end }}

{{- define "perdura.envFrom" -}}
- configMapRef: { name: {{ .Release.Name }} }
- secretRef: { name: {{ .Values.secret }} }
{{- end }}

{{/* All that is written: the root of the file system is read-only. */}}
{{- define "perdura.volumeMounts" -}}
- { name: workspace, mountPath: /app/workspace }
- { name: state, mountPath: /app/.perdura }
- { name: tmp, mountPath: /tmp }
{{- if and .temporal .root.Values.temporal.clientCertificate }}
- { name: temporal-tls, mountPath: /etc/temporal/tls, readOnly: true }
{{- end }}
{{- with .root.Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "perdura.volumes" -}}
{{- if .root.Values.workspaceClaim }}
- { name: workspace, persistentVolumeClaim: { claimName: {{ .root.Values.workspaceClaim }} } }
{{- else }}
- { name: workspace, emptyDir: {} }
{{- end }}
- { name: state, emptyDir: {} }
- { name: tmp, emptyDir: {} }
{{- if and .temporal .root.Values.temporal.clientCertificate }}
- { name: temporal-tls, secret: { secretName: {{ .root.Values.temporal.clientCertificate }} } }
{{- end }}
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Of a worker: all, or of some tools alone. `temporal`: whether it is told where Temporal is; the controller does that itself. */}}
{{- define "perdura.workerTemplate" -}}
metadata:
  labels:
    {{- include "perdura.labels" . | nindent 4 }}
  annotations:
    # Another configuration is another pod.
    perdura/config: {{ toJson .root.Values.config | sha256sum | trunc 16 }}
    prometheus.io/scrape: 'true'
    prometheus.io/port: '9464'
spec:
  {{- include "perdura.podSecurity" .root | nindent 2 }}
  terminationGracePeriodSeconds: {{ .root.Values.worker.terminationGracePeriodSeconds }}
  {{- with .nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "perdura.selector" . | nindent 10 }}
  containers:
    - name: worker
      {{- include "perdura.image" .root | nindent 6 }}
      args: {{ toJson .args }}
      env:
        {{- include "perdura.env" . | nindent 8 }}
        - { name: PERDURA_TASK_QUEUE, value: {{ .root.Values.taskQueue | quote }} }
        - { name: PERDURA_METRICS_ADDRESS, value: '0.0.0.0:9464' }
        - { name: PERDURA_HEALTH_ADDRESS, value: '0.0.0.0:9465' }
      envFrom:
        {{- include "perdura.envFrom" .root | nindent 8 }}
      ports:
        - { name: metrics, containerPort: 9464 }
        - { name: health, containerPort: 9465 }
      startupProbe:
        httpGet: { path: /healthz, port: health }
        periodSeconds: 2
        failureThreshold: 60
      # Rarer than a worker that stands still ends itself (PERDURA_BLOCKED_END_MS): that says in the log what it did.
      livenessProbe:
        httpGet: { path: /healthz, port: health }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: { path: /readyz, port: health }
        periodSeconds: 10
        timeoutSeconds: 5
      resources:
        {{- toYaml .resources | nindent 8 }}
      {{- include "perdura.containerSecurity" . | nindent 6 }}
      volumeMounts:
        {{- include "perdura.volumeMounts" . | nindent 8 }}
  volumes:
    {{- include "perdura.volumes" . | trim | nindent 4 }}
{{- end }}

{{/* CPU too: it is known where no adapter is, and rises before tasks wait. */}}
{{- define "perdura.hpaSpec" -}}
minReplicas: {{ .Values.autoscaling.minReplicas }}
maxReplicas: {{ .Values.autoscaling.maxReplicas }}
metrics:
  - type: External
    external:
      metric:
        name: {{ .Values.autoscaling.metric }}
        selector:
          matchLabels:
            {{ .Values.autoscaling.taskQueueLabel }}: {{ .Values.taskQueue | quote }}
      target: { type: AverageValue, averageValue: {{ .Values.autoscaling.backlogPerWorker | quote }} }
  - type: Resource
    resource:
      name: cpu
      target: { type: Utilization, averageUtilization: {{ .Values.autoscaling.cpuPercent }} }
behavior:
  scaleDown:
    # A worker that ends gives its conversations to others, which have to read their history.
    stabilizationWindowSeconds: 300
    policies:
      - { type: Pods, value: 1, periodSeconds: 60 }
{{- end }}
