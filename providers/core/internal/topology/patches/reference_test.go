package patches

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
)

// quickStart reads the Docker quick-start class and its templates from the reference data.
func quickStart(t testing.TB) *Input {
	t.Helper()
	file := filepath.Join("..", "..", "..", "..", "..", "shared", "facts", "data", "templates-v1.7", "docker", "clusterclass-quick-start.yaml")
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("reference data is not here: %s", file)
	}
	if err != nil {
		t.Fatal(err)
	}
	class := &clusterv1.ClusterClass{}
	templates := map[string]*unstructured.Unstructured{}
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		u := &unstructured.Unstructured{Object: tree(t, string(document)).(map[string]any)}
		templates[u.GetKind()+" "+u.GetName()] = u
		if u.GetKind() == "ClusterClass" {
			if err := yaml.UnmarshalStrict(document, class); err != nil {
				t.Fatal(err)
			}
		}
	}
	class.Status.Variables, err = variables.Merge(variables.Source{From: clusterv1.VariableDefinitionFromInline, Variables: class.Spec.Variables})
	if err != nil {
		t.Fatal(err)
	}
	in := fixture(t, "[]", "[]", `
variables:
- {name: imageRepository, value: my.registry}
- {name: etcdImageTag, value: ""}
- {name: coreDNSImageTag, value: v1.8.5}
- {name: podSecurityStandard, value: {enabled: true, enforce: baseline, audit: restricted, warn: restricted}}`)
	in.Class = class
	in.InfrastructureCluster.Source = templates["DockerClusterTemplate quick-start-cluster"]
	in.ControlPlane.Source = templates["KubeadmControlPlaneTemplate quick-start-control-plane"]
	in.ControlPlane.Machines.Source = templates["DockerMachineTemplate quick-start-control-plane"]
	for i := range in.MachineDeployments {
		in.MachineDeployments[i].Bootstrap.Source = templates["KubeadmConfigTemplate quick-start-default-worker-bootstraptemplate"]
		in.MachineDeployments[i].Infrastructure.Source = templates["DockerMachineTemplate quick-start-default-worker-machinetemplate"]
	}
	in.MachinePools[0].Class = "default-worker"
	in.MachinePools[0].Bootstrap.Source = templates["KubeadmConfigTemplate quick-start-default-worker-bootstraptemplate"]
	in.MachinePools[0].Infrastructure.Source = templates["DockerMachinePoolTemplate quick-start-default-worker-machinepooltemplate"]
	return in
}

func TestQuickStart(t *testing.T) {
	in := quickStart(t)
	if errs := Validate(in.Class, false); len(errs) > 0 {
		t.Errorf("the quick-start class is valid, got %v", errs)
	}
	engine, err := New(in.Class, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Apply(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	want := tree(t, `
version: v1.25.0
replicas: 3
machineTemplate: {metadata: {labels: {a: b}}, nodeDrainTimeout: 10s, infrastructureRef: {kind: DockerMachineTemplate, name: c-cp}}
kubeadmConfigSpec:
  clusterConfiguration:
    imageRepository: my.registry
    etcd: {local: {imageTag: null}}
    dns: {imageTag: v1.8.5}
    apiServer:
      certSANs: [localhost, 127.0.0.1, 0.0.0.0, host.docker.internal]
      extraArgs: {admission-control-config-file: /etc/kubernetes/kube-apiserver-admission-pss.yaml}
      extraVolumes:
      - {name: admission-pss, hostPath: /etc/kubernetes/kube-apiserver-admission-pss.yaml, mountPath: /etc/kubernetes/kube-apiserver-admission-pss.yaml, readOnly: true, pathType: File}
  files:
  - path: /etc/kubernetes/kube-apiserver-admission-pss.yaml
    content: |
      apiVersion: apiserver.config.k8s.io/v1
      kind: AdmissionConfiguration
      plugins:
      - name: PodSecurity
        configuration:
          apiVersion: pod-security.admission.config.k8s.io/v1
          kind: PodSecurityConfiguration
          defaults:
            enforce: "baseline"
            enforce-version: "latest"
            audit: "restricted"
            audit-version: "latest"
            warn: "restricted"
            warn-version: "latest"
          exemptions:
            usernames: []
            runtimeClasses: []
            namespaces: [kube-system]
  initConfiguration: {nodeRegistration: {}}
  joinConfiguration: {nodeRegistration: {}}`)
	if diff := cmp.Diff(want, in.ControlPlane.Target.Object["spec"]); diff != "" {
		t.Errorf("control plane (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(tree(t, `{template: {customImage: "kindest/node:v1.24.0"}}`), in.MachinePools[0].Infrastructure.Target.Object["spec"]); diff != "" {
		t.Errorf("MachinePool (-want +got):\n%s", diff)
	}
}

func BenchmarkNew(b *testing.B) {
	in := quickStart(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(in.Class, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	in := quickStart(b)
	engine, err := New(in.Class, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := engine.Apply(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
}
