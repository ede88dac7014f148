{{- define "forestall.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "forestall.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "forestall.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* Labels that select pods; they never change. Argument: dict "root" $ "process" NAME. */ -}}
{{- define "forestall.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .process }}
{{- end -}}

{{- define "forestall.labels" -}}
{{ include "forestall.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "forestall.image" -}}
{{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end -}}

{{- define "forestall.rights" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{- /*
The template of a pod. Arguments: "root" $, "process" NAME, "values" those of the process, "args" of the container,
"environment" further variables as YAML, "probes" as YAML, "ports" as YAML or "", "data" whether /data is a claim,
"pause" seconds between the end of its endpoints and its own, "client" whether it only calls the API, so gets no secrets.
*/ -}}
{{- define "forestall.pod" -}}
{{- $root := .root -}}
metadata:
  labels:
    {{- include "forestall.labels" . | nindent 4 }}
  annotations:
    checksum/settings: {{ toYaml $root.Values.settings | sha256sum }}
    {{- with .values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "forestall.account" $root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ add $root.Values.stopTimeoutSeconds 15 (default 0 .pause) }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: { type: RuntimeDefault }
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  initContainers:
    # The image's compiled kernels, at their place, in a folder that is writable, and by this user alone: code is executed
    # from there. Rows of reference tables are added to it.
    - name: kernels
      image: {{ include "forestall.image" $root }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: [cp, --archive, /var/cache/forestall, /cache/]
      securityContext:
        {{- include "forestall.rights" $root | nindent 8 }}
      resources:
        requests: { cpu: 50m, memory: 64Mi }
        limits: { memory: 256Mi }
      volumeMounts:
        - { name: cache, mountPath: /cache }
  containers:
    - name: {{ .process }}
      image: {{ include "forestall.image" $root }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: {{ toJson .args }}
      envFrom:
        - configMapRef: { name: {{ include "forestall.fullname" $root }} }
      env:
        {{- if not .client }}
        - { name: FORESTALL_REDIS_URL_FILE, value: /run/secrets/forestall/redis-url }
        - { name: FORESTALL_API_KEY_FILE, value: /run/secrets/forestall/api-key }
        {{- end }}
        {{- with .environment }}
        {{- . | nindent 8 }}
        {{- end }}
      {{- with .ports }}
      ports:
        {{- . | nindent 8 }}
      {{- end }}
      {{- .probes | nindent 6 }}
      {{- if .pause }}
      # Requests that are on their way still arrive while the endpoint is removed.
      lifecycle: { preStop: { exec: { command: [sleep, {{ .pause | quote }}] } } }
      {{- end }}
      securityContext:
        {{- include "forestall.rights" $root | nindent 8 }}
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      volumeMounts:
        {{- if not .client }}
        - { name: secrets, mountPath: /run/secrets/forestall, readOnly: true }
        {{- end }}
        - { name: tmp, mountPath: /tmp }
        - { name: cache, mountPath: /var/cache }
        - { name: data, mountPath: /data }
  volumes:
    {{- if not .client }}
    - name: secrets
      projected:
        defaultMode: 0440
        sources:
          - secret:
              name: {{ $root.Values.redis.existingSecret }}
              items: [{ key: {{ $root.Values.redis.key | quote }}, path: redis-url }]
          - secret:
              name: {{ $root.Values.apiKey.existingSecret }}
              items: [{ key: {{ $root.Values.apiKey.key | quote }}, path: api-key }]
    {{- end }}
    - name: tmp
      emptyDir: { sizeLimit: {{ $root.Values.scratch.temporary }} }
    - name: cache
      emptyDir: { sizeLimit: {{ $root.Values.scratch.cache }} }
    {{- if not .data }}
    - name: data
      emptyDir: { sizeLimit: {{ $root.Values.scratch.temporary }} }
    {{- end }}
  {{- with .values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- /* Probes of a process without a port, by its sign of life. Arguments: "process" NAME, "startup" seconds, "silence" seconds. */ -}}
{{- define "forestall.life" -}}
startupProbe:
  exec: { command: [container-health, {{ .process }}] }
  timeoutSeconds: 5
  periodSeconds: 5
  failureThreshold: {{ div .startup 5 }}
livenessProbe:
  exec: { command: [container-health, {{ .process }}] }
  timeoutSeconds: 5
  periodSeconds: 20
  failureThreshold: {{ div .silence 20 }}
{{- end -}}
