{{/*
The sidecar: an item for `initContainers` of your pod.

There is no startupProbe, because the kubelet would not start the app before it has passed. There is no
readinessProbe, because it would count for the whole pod: the app would need Redis to get into its Service. The security
context is all here, because the pod's own is the app's.
*/}}
{{- define "solotick.container" -}}
{{- $v := .Values.solotick -}}
- name: solotick
  image: {{ printf "%s:%s" $v.image.repository ($v.image.tag | default .Subcharts.solotick.Chart.AppVersion) | quote }}
  {{- with $v.image.pullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  restartPolicy: Always
  args: [run, --start-anyway, --log-format, json]
  terminationMessagePolicy: FallbackToLogsOnError
  env:
    - name: POD_NAME
      valueFrom: {fieldRef: {fieldPath: metadata.name}}
    - name: SOLOTICK_ENVIRONMENT # those of another are not joined
      valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
    - {name: SOLOTICK_STATE_DIR, value: /var/lib/solotick} # `kubectl exec` has it too
    {{- if $v.tableDirectory }}
    - {name: SOLOTICK_CONFIG, value: /etc/solotick}
    {{- end }}
    {{- with $v.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    - {name: solotick, containerPort: {{ $v.port }}}
  livenessProbe:
    httpGet: {path: /healthz, port: solotick}
    periodSeconds: 10
    failureThreshold: 6
    terminationGracePeriodSeconds: 10
  lifecycle:
    preStop:
      exec: {command: [solotick, drain, --admin, {{ $v.admin | quote }}]}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
    seccompProfile: {type: RuntimeDefault}
  resources:
    {{- toYaml $v.resources | nindent 4 }}
  volumeMounts:
    - {name: solotick-table, mountPath: /etc/solotick, readOnly: true}
    - {name: solotick-secrets, mountPath: /run/secrets/solotick, readOnly: true}
    - {name: solotick-state, mountPath: /var/lib/solotick}
    {{- with $v.volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
