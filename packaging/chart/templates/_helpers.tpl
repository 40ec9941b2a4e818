{{- define "carillon.name" -}}
{{- if contains "carillon" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-carillon" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "carillon.selector" -}}
app.kubernetes.io/name: carillon
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "carillon.labels" -}}
{{ include "carillon.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The image says where data lies and which addresses it listens on. */}}
{{- define "carillon.settings" -}}
{{- $settings := dict "metrics-listen" (printf "0.0.0.0:%d" (int .Values.metrics.port)) }}
{{- if .Values.tls.http }}
{{- $_ := set $settings "tls-cert" "/etc/carillon/tls-http/tls.crt" }}
{{- $_ := set $settings "tls-key" "/etc/carillon/tls-http/tls.key" }}
{{- end }}
{{- if .Values.tls.executors }}
{{- $_ := set $settings "executors-tls-cert" "/etc/carillon/tls-executors/tls.crt" }}
{{- $_ := set $settings "executors-tls-key" "/etc/carillon/tls-executors/tls.key" }}
{{- end }}
{{- if .Values.insecureBind }}
{{- $_ := set $settings "insecure-bind" true }}
{{- else if not (and .Values.tls.http .Values.tls.executors) }}
{{- fail "tls.http and tls.executors name Secrets with certificates; where a proxy or a private network protects a port without one, say insecureBind: true" }}
{{- end }}
{{- if .Values.trustedProxies }}
{{- $_ := set $settings "trusted-proxies" .Values.trustedProxies }}
{{- end }}
{{- if and .Values.ingress.enabled .Values.ingress.host }}
{{- $_ := set $settings "base-url" (printf "https://%s%s" .Values.ingress.host .Values.ingress.path) }}
{{- end }}
{{- toYaml (merge (deepCopy .Values.settings) $settings) }}
{{- end }}
