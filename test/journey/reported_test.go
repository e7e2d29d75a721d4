package journey

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// reported is input of users, or an example of the specification. Each once had another result than v1.7's.
type reported struct {
	// files are below the folder of reported inputs, and are applied in this order.
	files []string
	// replace are pairs of strings: parts of files that stand for something else.
	replace []string
	// class and worker are those of another Cluster, own, which is created after them.
	class, worker string
	// fails are words of TopologyReconciled by the names of Clusters that cannot work. All others must be reconciled.
	fails map[string]string
	// refused is the number of objects that the API server must refuse.
	refused int
	// want are parts of the JSON of objects of a kind.
	want map[string][]string
	// ready are the Clusters that become ready. The machines of the others are not simulated.
	ready []string
}

const planeKind, configTemplate = "KubeadmControlPlane", "KubeadmConfigTemplate"

func reports() map[string]reported {
	const docker = "specification/docker-templates.yaml"
	const awsTemplate, pools = "AWSMachineTemplate", "MachinePool"
	return map[string]reported{
		"enabledIf is parsed as YAML": {
			files: []string{"core/class.yaml", "core/11-enabledif.yaml"}, replace: []string{"PATCHNAME", "words"},
			class: "words", worker: "w", ready: []string{"own"},
			want: map[string][]string{configTemplate: {`"block":"1"`, `"folded":"1"`, `"yes-word":"1"`}},
		},
		"numbers above 2^53, paths with ~, nested defaults": {
			files: []string{"core/class.yaml"}, class: "c", worker: "w", ready: []string{"own"},
			want: map[string][]string{
				"Cluster":      {`9007199254740993`},
				configTemplate: {`"a/b~c~1":"escaped"`, `"big":"1000000 9007199254740993 1.0000005e+06"`, `"first":"1e3"`, `"verbosity":3`},
			},
		},
		"a value in a map that the template has empty": {
			files: []string{"daily-use/class.yaml", "daily-use/cluster.yaml"}, ready: []string{"own"},
			want: map[string][]string{planeKind: {"audit-log-path"}, configTemplate: {"group=a"}},
		},
		"a Cluster without infrastructure": {files: []string{"core/13-no-infrastructure.yaml"}},
		"health checks of a class": {
			files: []string{"specification/L109-class-mhc.yaml", docker}, class: "docker-clusterclass-v0.1.0", worker: "default-worker",
			want: map[string][]string{"MachineHealthCheck": {`"maxUnhealthy":"33%"`, `"unhealthyRange":"[0-2]"`}},
		},
		"an image repository as variable": {
			files: []string{"specification/L144-imagerepository.yaml"},
			want:  map[string][]string{planeKind: {`"imageRepository":"registry.k8s.io"`}},
		},
		"names of objects": {
			files: []string{"specification/L207-naming.yaml"}, refused: 1, fails: map[string]string{"nam-bad": "nam-bad does not exist"},
			want: map[string][]string{pools: {`"name":"nam-custom-`}},
		},
		"the Docker class and its Cluster": {
			files: []string{"specification/L25-class-basic.yaml", docker, "specification/L70-cluster-basic.yaml"},
			want:  map[string][]string{planeKind: {"cpLabel", "cpAnnotation"}, "MachineDeployment": {`"failureDomain":"region"`}},
		},
		"standards of Pod security": {
			files:   []string{"specification/L2351-pss.yaml", "specification/L2523-pss-clusters.yaml"},
			refused: 1, fails: map[string]string{"wp": "extraVolumes does not exist"},
		},
		"variables of AWS, with overrides": {
			files:   []string{"specification/L304-aws.yaml", "specification/L347-aws-cluster.yaml"},
			replace: []string{"variables: null", "variables: [{name: workerMachineType, value: t3.large}]"},
			want:    map[string][]string{awsTemplate: {"t3.small", "t3.large"}},
		},
		"all builtin variables": {
			files: []string{"specification/L376-builtins.yaml"},
			want: map[string][]string{awsTemplate: {
				`"builtin_cluster_network_ipFamily":"IPv4"`, `"builtin_controlPlane_replicas":`, `"builtin_machineDeployment_topologyName":`,
				`"builtin_machineDeployment_bootstrap_configRef_name":`,
			}},
		},
		"builtin variables with Docker": {
			files: []string{"specification/L395-L413-docker.yaml"},
			want:  map[string][]string{"DockerMachineTemplate": {`"customImage":"kindest/node:v1.`}},
		},
		"complex variables without required": {
			files:   []string{"specification/L440-complex-asis-rejected.yaml"},
			replace: []string{"noProxy: n\n", "noProxy: \"n\"\n"}, // kubectl reads n as false.
		},
		"complex variables":     {files: []string{"specification/L440-complex.yaml"}, replace: []string{"noProxy: n\n", "noProxy: \"n\"\n"}},
		"variables of any form": {files: []string{"specification/L530-freeform.yaml", "specification/L530-freeform-cluster.yaml"}},
		"values by templates": {
			files: []string{"specification/L542-templates.yaml"},
			want:  map[string][]string{planeKind: {`"local":{"imageTag":"3.5.1-0"`}, awsTemplate: {`kindest/node:v1.21.1`, `kindest/node:v1.22.3`}},
		},
		"upgrades in sequence": {files: []string{"specification/L636-sequential.yaml"}},
		"lists that patches add to": {
			files: []string{"specification/L653-addfile.yaml"}, fails: map[string]string{"af2": "/spec/template/spec/files does not exist"},
			want: map[string][]string{configTemplate: {"/some/file", "/some/other/file"}},
		},
		"a machine pool and workers": {files: []string{"specification/L798-effects-base.yaml"}},
		"daily operations":           {files: []string{"specification/L864-operate.yaml", "specification/L909-scale.yaml"}, ready: []string{"capi-quickstart"}},
		"Ignition":                   {files: []string{"specification/L1980-ignition.yaml"}, ready: []string{"ignition-cluster"}},
	}
}

// TestReportedInputs applies what users reported, and examples of the specification, as they are.
func TestReportedInputs(t *testing.T) {
	t.Parallel()
	m := shared.Management(t)
	dir := filepath.Join(cmp.Or(os.Getenv("CAPI_REPORTS_DIR"), filepath.Join(m.Tools.Root, "..", "shared", "findings")), "cases")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the reported inputs are absent: set CAPI_REPORTS_DIR to the directory with cases (%v)", err)
	}
	m.withoutControllers(t, dir)
	for reason, tc := range reports() {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			tc.run(t, m.World(t), dir)
		})
	}
}

// withoutControllers installs kinds of infrastructure that nothing simulates: topologies create their objects, and no more.
func (m *Management) withoutControllers(t *testing.T, dir string) {
	t.Helper()
	files := []string{filepath.Join(dir, "specification", "fake-crds.yaml")}
	docker, err := filepath.Glob(filepath.Join(m.Tools.Root, "providers", "infrastructure-docker", "config", "crd", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range append(files, docker...) {
		objects, err := readObjects(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, crd); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			crd.Labels = map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta1"}
			crds = append(crds, crd)
		}
	}
	shared.server.Start(t).Install(t, crds...)
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "reported-inputs-capi", Labels: map[string]string{"cluster.x-k8s.io/aggregate-to-manager": "true"}},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"infrastructure.cluster.x-k8s.io"}, Resources: []string{"*"},
			Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"}}},
	}
	if err := m.Client.Create(t.Context(), role); err != nil {
		t.Fatalf("granting permissions to the managers: %v", err)
	}
}

func (tc reported) run(t *testing.T, w *World, dir string) {
	var clusters []*Subject
	refused := 0
	for _, o := range tc.objects(t, w, dir) {
		switch err := w.apply(t.Context(), o); {
		case err != nil:
			refused++
			if refused > tc.refused {
				t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
			}
		case o.GetKind() == "Cluster":
			clusters = append(clusters, &Subject{World: w, Name: o.GetName()})
		}
	}
	if refused < tc.refused {
		t.Errorf("%d objects were refused, want %d", refused, tc.refused)
	}
	for _, c := range clusters {
		if words, fails := tc.fails[c.Name]; fails {
			c.Eventually("the mistake is reported", topologyFails(words))
			continue
		}
		c.Eventually("the Cluster makes progress", func(p *Snapshot) error {
			if p.Cluster.Spec.Topology != nil {
				return reconciled("")(p)
			}
			if phase := p.Cluster.Status.GetTypedPhase(); phase != clusterv1.ClusterPhaseProvisioned {
				return fmt.Errorf("the phase is %s", phase)
			}
			return nil
		})
		if slices.Contains(tc.ready, c.Name) {
			c.Eventually("the Cluster becomes ready", Ready)
		}
	}
	tc.check(t, w)
	for _, c := range clusters {
		c.Delete()
	}
}

// objects returns the objects of all files, in the namespace of a World.
func (tc reported) objects(t *testing.T, w *World, dir string) []*unstructured.Unstructured {
	t.Helper()
	namespaces := regexp.MustCompile(`\bnamespace: (aws|im|tm|rt|default)\b`)
	replacer := strings.NewReplacer(tc.replace...)
	var all []*unstructured.Unstructured
	add := func(file, text string) {
		objects, err := parseObjects(replacer.Replace(namespaces.ReplaceAllString(text, "namespace: "+w.Namespace)))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, o := range objects {
			o.SetNamespace(w.Namespace)
			all = append(all, o)
		}
	}
	for _, file := range tc.files {
		content, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		add(file, string(content))
	}
	if tc.class != "" {
		add("own", manifest("own", "    class: "+tc.class+"\n    version: v1.31.2\n    controlPlane: {replicas: 1}\n"+
			"    workers: {machineDeployments: [{class: "+tc.worker+", name: a, replicas: 1}]}\n"))
	}
	return all
}

// check compares the objects in the namespace with what they must contain.
func (tc reported) check(t *testing.T, w *World) {
	t.Helper()
	all, versions := map[string]string{}, conversion.New(nil)
	w.each(func(_ string, o metav1.PartialObjectMetadata) {
		if tc.want[o.Kind] == nil {
			return
		}
		full, kind := &unstructured.Unstructured{}, o.GroupVersionKind()
		if slices.Contains(versions.Versions(kind.GroupKind()), "v1beta1") {
			kind.Version = "v1beta1" // in which the inputs are
		}
		full.SetGroupVersionKind(kind)
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(&o), full); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(full)
		if err != nil {
			t.Fatal(err)
		}
		all[o.Kind] += string(text) + "\n"
	})
	for kind, parts := range tc.want {
		for _, part := range parts {
			if !strings.Contains(all[kind], part) {
				t.Errorf("no %s contains %s:\n%s", kind, part, all[kind])
			}
		}
	}
}
