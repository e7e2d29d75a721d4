{{/*
The types of providers: the key of their values, their kind, and their label.
*/}}
{{- define "capi-operator.types" -}}
- {key: core, kind: CoreProvider, label: core}
- {key: bootstrap, kind: BootstrapProvider, label: bootstrap}
- {key: controlPlane, kind: ControlPlaneProvider, label: control-plane}
- {key: infrastructure, kind: InfrastructureProvider, label: infrastructure}
- {key: addon, kind: AddonProvider, label: addon}
- {key: ipam, kind: IPAMProvider, label: ipam}
- {key: runtimeExtension, kind: RuntimeExtensionProvider, label: runtime-extension}
{{- end -}}

{{/*
The entries of all providers that are enabled, in JSON: by key of the type, and by name.
*/}}
{{- define "capi-operator.entries" -}}
{{- $entries := dict -}}
{{- $others := false -}}
{{- range $type := include "capi-operator.types" . | fromYamlArray -}}
  {{- $enabled := dict -}}
  {{- range $name, $entry := get $.Values $type.key | default dict -}}
    {{- $entry = default dict $entry -}}
    {{- if dig "enabled" true $entry -}}
      {{- $_ := set $enabled $name $entry -}}
      {{- $others = or $others (ne $type.key "core") -}}
    {{- end -}}
  {{- end -}}
  {{- $_ := set $entries $type.key $enabled -}}
{{- end -}}
{{- if and $others (not .Values.core) -}}
  {{- $_ := set $entries "core" (dict "cluster-api" dict) -}}
{{- end -}}
{{- if $entries.infrastructure -}}
  {{- range $key := list "bootstrap" "controlPlane" -}}
    {{- if not (get $.Values $key) -}}
      {{- $_ := set $entries $key (dict "kubeadm" dict) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- toJson $entries -}}
{{- end -}}

{{/*
The feature gates of the provider .name of type .key with the entry .entry, in JSON: those of the type, of the provider, and of the entry, in
ascending order of precedence. Functions that merge ignore false.
*/}}
{{- define "capi-operator.gates" -}}
{{- $gates := dict -}}
{{- $ofType := get .root.Values.manager.featureGates .key | default dict -}}
{{- range $gate, $value := $ofType -}}
  {{- if not (kindIs "map" $value) -}}
    {{- $_ := set $gates $gate $value -}}
  {{- end -}}
{{- end -}}
{{- range $source := list (get $ofType .name | default dict) (dig "manager" "featureGates" dict .entry) -}}
  {{- range $gate, $value := $source -}}
    {{- $_ := set $gates $gate $value -}}
  {{- end -}}
{{- end -}}
{{- toJson $gates -}}
{{- end -}}

{{/*
All providers in install order, in JSON: kind, name, namespace, createNamespace, spec, and whether the object exists.
*/}}
{{- define "capi-operator.providers" -}}
{{- $entries := include "capi-operator.entries" . | fromJson -}}
{{- $usual := .Files.Get "files/namespaces.yaml" | fromYaml -}}
{{- $keys := list -}}
{{- $providers := list -}}
{{- range $type := include "capi-operator.types" . | fromYamlArray -}}
  {{- $keys = append $keys $type.key -}}
  {{- $live := list -}}
  {{- if $.Capabilities.APIVersions.Has (printf "operator.cluster.x-k8s.io/v1alpha2/%s" $type.kind) -}}
    {{- $live = dig "items" list (lookup "operator.cluster.x-k8s.io/v1alpha2" $type.kind "" "") -}}
  {{- end -}}
  {{- range $name, $entry := get $entries $type.key -}}
    {{- $namespace := dig "namespace" "" $entry -}}
    {{- $found := "" -}}
    {{- range $live -}}
      {{- if and (eq .metadata.name $name) (or (not $namespace) (eq .metadata.namespace $namespace)) -}}
        {{- $found = .metadata.namespace -}}
      {{- end -}}
    {{- end -}}
    {{- $namespace = coalesce $namespace $found (dig $type.label $name "" $usual) (printf "%s-%s-system" $name $type.label) -}}
    {{- $spec := omit $entry "enabled" "namespace" "createNamespace" -}}
    {{- $gates := include "capi-operator.gates" (dict "root" $ "key" $type.key "name" $name "entry" $entry) | fromJson -}}
    {{- if $gates -}}
      {{- $manager := deepCopy (dig "manager" dict $spec) -}}
      {{- $_ := set $spec "manager" (set $manager "featureGates" $gates) -}}
    {{- end -}}
    {{- if and $.Values.configSecret.name (not $spec.configSecret) (not $spec.secretName) -}}
      {{- $_ := set $spec "configSecret" $.Values.configSecret -}}
    {{- end -}}
    {{- $providers = append $providers (dict "kind" $type.kind "name" $name "namespace" $namespace
      "createNamespace" (dig "createNamespace" true $entry) "spec" $spec "exists" (ne $found "")) -}}
  {{- end -}}
{{- end -}}
{{- range $key, $gates := .Values.manager.featureGates -}}
  {{- if not (has $key $keys) -}}
    {{- fail (printf "manager.featureGates.%s: not a type of providers, which are %s" $key (join ", " $keys)) -}}
  {{- end -}}
{{- end -}}
{{- dict "items" $providers | toJson -}}
{{- end -}}

{{/*
The manifest of a provider, without annotations.
*/}}
{{- define "capi-operator.manifest" -}}
apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
spec: {{- .spec | toYaml | nindent 2 }}
{{- end -}}

{{/*
Annotations of objects that are created once: hooks of Helm, which it deletes at no time, as "never" is none of its policies.
*/}}
{{- define "capi-operator.hook" -}}
argocd.argoproj.io/sync-wave: {{ .weight | quote }}
helm.sh/resource-policy: keep
{{- if .root.Values.enableHelmHook }}
helm.sh/hook: post-install,post-upgrade
helm.sh/hook-delete-policy: never
helm.sh/hook-weight: {{ .weight | quote }}
{{- end }}
{{- end -}}
