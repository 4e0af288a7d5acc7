{{- define "virt-advisor.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "virt-advisor.args" -}}
- run
- --leader-elect
- --leader-election-namespace=$(POD_NAMESPACE)
- --pod-name=$(POD_NAME)
- --health-probe-bind-address=:8081
- --metrics-bind-address=:8443
{{- if .Values.metrics.certificateSecret }}
- --metrics-cert-path=/var/run/metrics-certificate
{{- end }}
{{- if .Values.logLevel }}
- --zap-log-level={{ .Values.logLevel }}
{{- end }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "virt-advisor.volumes" -}}
{{- if .Values.metrics.certificateSecret -}}
- name: metrics-certificate
  secret:
    secretName: {{ .Values.metrics.certificateSecret }}
{{- else -}}
[]
{{- end -}}
{{- end -}}

{{- define "virt-advisor.volumeMounts" -}}
{{- if .Values.metrics.certificateSecret -}}
- name: metrics-certificate
  mountPath: /var/run/metrics-certificate
  readOnly: true
{{- else -}}
[]
{{- end -}}
{{- end -}}
