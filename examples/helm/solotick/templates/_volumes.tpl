{{/* What the sidecar mounts: items for `volumes` of your pod. */}}
{{- define "solotick.volumes" -}}
{{- $v := .Values.solotick -}}
- name: solotick-table
  configMap: {name: {{ include "solotick.configMapName" . }}}
- name: solotick-state
  emptyDir: {sizeLimit: 8Mi}
- name: solotick-secrets
  secret:
    secretName: {{ $v.redisPassword.secretName }}
    optional: true
    items: [{key: {{ $v.redisPassword.key }}, path: redis-password}]
{{- end }}
