{{/* The ConfigMap with the table, a manifest of its own. The sidecars reload it: no pod is replaced. */}}
{{- define "solotick.configMap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "solotick.configMapName" . }}
  namespace: {{ .Release.Namespace }}
data:
  {{- with .Values.solotick.tableDirectory }}
  {{- $files := $.Files.Glob (printf "%s/*.{yaml,yml}" .) }}
  {{- if not $files }}{{ fail (printf "Solotick needs files that end in .yaml in the directory %s of your chart" .) }}{{ end }}
  {{- $files.AsConfig | nindent 2 }}
  {{- else }}
  table.yaml: |
    {{- required "Solotick needs the file table.yaml in the directory of your chart" (.Files.Get "table.yaml") | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "solotick.configMapName" -}}
{{ .Release.Name | trunc 54 | trimSuffix "-" }}-solotick
{{- end }}
