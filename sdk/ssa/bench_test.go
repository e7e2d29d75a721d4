package ssa

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// controlPlane is the largest object that a topology applies.
const controlPlane = `
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlane
metadata:
  name: cluster-x7k2p
  namespace: default
  labels: {cluster.x-k8s.io/cluster-name: cluster, topology.cluster.x-k8s.io/owned: ""}
  annotations: {cluster.x-k8s.io/cloned-from-groupkind: KubeadmControlPlaneTemplate.controlplane.cluster.x-k8s.io, cluster.x-k8s.io/cloned-from-name: class}
  ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, name: cluster, uid: 0b2a, controller: true, blockOwnerDeletion: true}]
spec:
  replicas: 3
  version: v1.30.0
  machineTemplate:
    infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, name: cluster-q8d4z, namespace: default}
    metadata: {labels: {cluster.x-k8s.io/cluster-name: cluster, topology.cluster.x-k8s.io/owned: ""}}
    nodeDrainTimeout: 10m0s
  kubeadmConfigSpec:
    clusterConfiguration:
      apiServer: {certSANs: [localhost, 127.0.0.1], extraArgs: {audit-log-path: /var/log/audit, audit-policy-file: /etc/policy}, extraVolumes: [{name: audit, hostPath: /etc/policy, mountPath: /etc/policy, readOnly: true}]}
      controllerManager: {extraArgs: {enable-hostpath-provisioner: "true"}}
    initConfiguration: {nodeRegistration: {criSocket: unix:///var/run/containerd/containerd.sock, kubeletExtraArgs: {eviction-hard: "nodefs.available<0%"}}}
    joinConfiguration: {nodeRegistration: {criSocket: unix:///var/run/containerd/containerd.sock, kubeletExtraArgs: {eviction-hard: "nodefs.available<0%"}}}
    files: [{path: /etc/policy, owner: root, permissions: "0600", content: "rules: []"}, {path: /etc/other, content: text}]
    preKubeadmCommands: [echo one, echo two, echo three]
    users: [{name: admin, sshAuthorizedKeys: [key], sudo: "ALL=(ALL) NOPASSWD:ALL"}]
`

// benchmarked is what a controller has in hand in a steady state: the schema, the object as the API server keeps it,
// and what shall be applied to it once more.
func benchmarked(b *testing.B) (s *kindSchema, live, desired *unstructured.Unstructured) {
	e := server.Start(b, "providers/control-plane-kubeadm/config/crd")
	crds, err := e.ReadCRDs("providers/control-plane-kubeadm/config/crd")
	if err != nil {
		b.Fatal(err)
	}
	for _, crd := range crds {
		if crd.Spec.Names.Kind == "KubeadmControlPlane" {
			if s, err = newKindSchema(crd, "v1beta1"); err != nil {
				b.Fatal(err)
			}
		}
	}
	desired = &unstructured.Unstructured{}
	encoded, err := yaml.YAMLToJSON([]byte(controlPlane))
	if err != nil {
		b.Fatal(err)
	}
	if err := desired.UnmarshalJSON(encoded); err != nil {
		b.Fatal(err)
	}
	desired.SetNamespace(e.Namespace(b))
	return s, create(b, e, s, desired), desired
}

// create applies desired, writes status as another manager, and reads the result.
func create(b *testing.B, e *testenv.Env, s *kindSchema, desired *unstructured.Unstructured) *unstructured.Unstructured {
	a := NewApplier(e.Client, NewSchemas(e.Client, e.Client), ours)
	live, _, err := a.Apply(b.Context(), nil, desired)
	if err != nil {
		b.Fatal(err)
	}
	live.Object["status"] = map[string]any{"version": "v1.30.0", "replicas": int64(3), "readyReplicas": int64(3), "initialized": true, "ready": true}
	if err := e.Client.Status().Update(b.Context(), live); err != nil {
		b.Fatal(err)
	}
	return live
}

func BenchmarkNothingToApply(b *testing.B) {
	s, live, desired := benchmarked(b)
	b.ReportAllocs()
	for b.Loop() {
		diff, err := plan(s, live, desired, ours)
		if err != nil || diff.Changed() {
			b.Fatalf("%+v, error %v; want no change", diff, err)
		}
	}
}

func BenchmarkOneChange(b *testing.B) {
	s, live, desired := benchmarked(b)
	if err := unstructured.SetNestedField(desired.Object, "v1.31.0", "spec", "version"); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		diff, err := plan(s, live, desired, ours)
		if err != nil || len(diff.Spec) != 1 {
			b.Fatalf("%+v, error %v; want one change", diff, err)
		}
	}
}

// BenchmarkDryRun is what the comparison stands in for: the same question as a request.
func BenchmarkDryRun(b *testing.B) {
	_, _, desired := benchmarked(b)
	e := server.Start(b)
	b.ReportAllocs()
	for b.Loop() {
		config := client.ApplyConfigurationFromUnstructured(desired.DeepCopy())
		if err := e.Client.Apply(b.Context(), config, client.FieldOwner(ours), client.ForceOwnership, client.DryRunAll); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewSchema(b *testing.B) {
	e := server.Start(b)
	crds, err := e.ReadCRDs("providers/control-plane-kubeadm/config/crd")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, crd := range crds {
			if crd.Spec.Names.Kind != "KubeadmControlPlane" {
				continue
			}
			if _, err := newKindSchema(crd, "v1beta1"); err != nil {
				b.Fatal(err)
			}
		}
	}
}
