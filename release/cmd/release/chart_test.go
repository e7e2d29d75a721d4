package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/release/image"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// ofRelease is a release whose images have digests.
func ofRelease() release {
	return release{
		files: filesOf(root), version: "v2.0.5", registry: "example.org:5000/images", imageList: "images.json",
		images: image.List{
			Registry: "example.org:5000/images", Version: "v2.0.5", Images: map[string]image.Built{"cluster-api-operator": {Digest: digest}},
		},
	}
}

// packaged returns the chart of the operator, and the operator.
func (r release) packaged(t *testing.T) (*packagedChart, component) {
	t.Helper()
	components, err := loadComponents(root)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(components, func(c component) bool { return c.Type == "operator" })
	packaged, err := r.chart(components[i], components)
	if err != nil || packaged == nil {
		t.Fatalf("got %v, %v", packaged, err)
	}
	return packaged, components[i]
}

// charted is the chart as Helm reads it.
func (r release) charted(t *testing.T) *chart.Chart {
	t.Helper()
	packaged, _ := r.packaged(t)
	out, err := loader.LoadArchive(bytes.NewReader(packaged.Content))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// withoutDefinitions is the chart without CustomResourceDefinitions, which take most of the time to render.
func (r release) withoutDefinitions(t *testing.T) *chart.Chart {
	t.Helper()
	c := r.charted(t)
	c.Templates = slices.DeleteFunc(c.Templates, func(f *common.File) bool { return strings.HasPrefix(f.Name, "templates/customresourcedefinition/") })
	return c
}

// cluster has the provider objects and Namespaces that templates look up.
type cluster struct{ dynamic.Interface }

// GetClientFor implements engine.ClientProvider.
func (c cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	return c.Resource(gvk.GroupVersion().WithResource(strings.ToLower(kind) + "s")), kind != "Namespace", nil
}

var providerKinds = []string{
	"CoreProvider", "BootstrapProvider", "ControlPlaneProvider", "InfrastructureProvider", "AddonProvider", "IPAMProvider", "RuntimeExtensionProvider",
}

// render renders the chart with values, in a cluster with objects; without objects, as in one without the operator's kinds. Keys are kind and
// name.
func render(t *testing.T, c *chart.Chart, values, objects string) (map[string]*unstructured.Unstructured, string, error) {
	t.Helper()
	given := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	live, err := split([]byte(objects))
	if err != nil {
		t.Fatal(err)
	}
	group := schema.GroupVersion{Group: "operator.cluster.x-k8s.io", Version: "v1alpha2"}
	lists := map[schema.GroupVersionResource]string{{Version: "v1", Resource: "namespaces"}: "NamespaceList"}
	capabilities := common.DefaultCapabilities.Copy()
	for _, kind := range providerKinds {
		lists[group.WithResource(strings.ToLower(kind)+"s")] = kind + "List"
		if len(live) > 0 {
			capabilities.APIVersions = append(slices.Clone(capabilities.APIVersions), group.String()+"/"+kind)
		}
	}
	all := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
	for _, o := range live {
		if err := all.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	final, err := util.ToRenderValues(c, given, common.ReleaseOptions{Name: "r", Namespace: "capi-operator-system", IsInstall: true}, capabilities)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.RenderWithClientProvider(c, final, cluster{all})
	if err != nil {
		return nil, "", err
	}
	out, notes := map[string]*unstructured.Unstructured{}, ""
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") {
			notes = files[name]
			continue
		}
		found, err := split([]byte(files[name]))
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, files[name])
		}
		for _, o := range found {
			key := o.GetKind() + " " + o.GetName()
			if out[key] != nil {
				t.Errorf("%s twice", key)
			}
			out[key] = o
		}
	}
	return out, notes, nil
}

// TestChartIsTheManifests checks that the chart without values is what users apply without Helm.
func TestChartIsTheManifests(t *testing.T) {
	r := ofRelease()
	got, _, err := render(t, r.charted(t), "", "")
	if err != nil {
		t.Fatal(err)
	}
	_, operator := r.packaged(t)
	objects, err := r.objects(operator)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		if o.GetKind() != "Namespace" { // helm install --create-namespace
			want[o.GetKind()+" "+o.GetName()] = o
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Fatalf("-manifests +chart:\n%s", diff)
	}
	for key, o := range got {
		if annotations := o.GetAnnotations(); o.GetKind() == "CustomResourceDefinition" {
			if annotations[keepAnnotation] != "keep" {
				t.Errorf("uninstalling the chart would delete %s", key)
			}
			unstructured.RemoveNestedField(o.Object, "metadata", "annotations", keepAnnotation)
			if len(annotations) == 1 {
				unstructured.RemoveNestedField(o.Object, "metadata", "annotations")
			}
		}
		if diff := cmp.Diff(text(t, want[key].Object), text(t, o.Object)); diff != "" {
			t.Errorf("%s: -manifests +chart:\n%s", key, diff)
		}
	}
}

func text(t *testing.T, value any) string {
	t.Helper()
	raw, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestChartInAnyNamespace checks that nothing refers to the usual namespace.
func TestChartInAnyNamespace(t *testing.T) {
	c := ofRelease().charted(t)
	values, err := util.ToRenderValues(c, map[string]any{"core": map[string]any{"cluster-api": nil}}, common.ReleaseOptions{Name: "r", Namespace: "other"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, values)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if strings.Contains(content, "capi-operator-system") && !strings.Contains(name, "customresourcedefinition") {
			t.Errorf("%s: %s", name, content)
		}
	}
}

const (
	manager = "Deployment capi-operator-controller-manager"
	pod     = "spec.template.spec."
	one     = pod + "containers.0."
)

// valueTests is what each value renders to: the part of an object at a path, in YAML.
var valueTests = []struct{ reason, values, object, path, want string }{
	{"the image of the release", ``, manager, one + "image", "example.org:5000/images/cluster-api-operator:v2.0.5@" + digest},
	{"a mirror has the same digests", `image: {manager: {repository: mirror:5000/a/operator}}`, manager, one + "image", "mirror:5000/a/operator:v2.0.5@" + digest},
	{"another version has another digest", `image: {manager: {tag: v2.1.0}}`, manager, one + "image", "example.org:5000/images/cluster-api-operator:v2.1.0"},
	{"another digest", `image: {manager: {tag: a, digest: "` + strings.ReplaceAll(digest, "0", "1") + `"}}`, manager, one + "image",
		"example.org:5000/images/cluster-api-operator:a@" + strings.ReplaceAll(digest, "0", "1")},
	{"", `image: {manager: {pullPolicy: Always}}`, manager, one + "imagePullPolicy", "Always"},
	{"", `imagePullSecrets: [{name: s}]`, manager, pod + "imagePullSecrets", "- name: s"},
	{"", `replicaCount: 2`, manager, "spec.replicas", "2"},
	{"no replicas", `replicaCount: 0`, manager, "spec.replicas", "0"},
	{"", `logLevel: 4`, manager, one + "args", "- --leader-elect\n- --diagnostics-address=:8443\n- --insecure-diagnostics=false\n- --v=4"},
	{"", `healthAddr: ":9999"`, manager, one + "args", "- --leader-elect\n- --diagnostics-address=:8443\n- --insecure-diagnostics=false\n- --health-addr=:9999"},
	{"the port of the probes", `healthAddr: "[::]:9999"`, manager, one + "ports.1.containerPort", "9999"},
	{"", `diagnosticsAddress: "127.0.0.1:1"`, manager, one + "args", "- --leader-elect\n- --diagnostics-address=127.0.0.1:1\n- --insecure-diagnostics=false"},
	{"the port of metrics", `diagnosticsAddress: ":1"`, manager, one + "ports.2.containerPort", "1"},
	{"", `insecureDiagnostics: true`, manager, one + "args", "- --leader-elect\n- --diagnostics-address=:8443\n- --insecure-diagnostics=true"},
	{"", `{profilerAddress: "localhost:6060", contentionProfiling: true, leaderElection: {enabled: false}}`, manager, one + "args",
		"- --diagnostics-address=:8443\n- --insecure-diagnostics=false\n- --profiler-address=localhost:6060\n- --contention-profiling"},
	{"", `leaderElection: {leaseDuration: 1m, renewDeadline: 40s, retryPeriod: 5s}`, manager, one + "args",
		"- --leader-elect\n- --leader-elect-lease-duration=1m\n- --leader-elect-renew-deadline=40s\n- --leader-elect-retry-period=5s\n" +
			"- --diagnostics-address=:8443\n- --insecure-diagnostics=false"},
	{"a limit stays", `resources: {manager: {limits: {cpu: 1}}}`, manager, one + "resources", "limits:\n  cpu: 1\n  memory: 2Gi\nrequests:\n  memory: 64Mi"},
	{"", `env: {manager: [{name: A, value: b}]}`, manager, one + "env.4", "name: A\nvalue: b"},
	{"", `volumes: [{name: v, emptyDir: {}}]`, manager, pod + "volumes", "- emptyDir: {}\n  name: v"},
	{"", `volumeMounts: {manager: [{name: v, mountPath: /v}]}`, manager, one + "volumeMounts", "- mountPath: /v\n  name: v"},
	{"false is a value", `securityContext: {runAsNonRoot: false}`, manager, pod + "securityContext", "runAsNonRoot: false\nseccompProfile:\n  type: RuntimeDefault"},
	{"", `containerSecurityContext: {manager: {runAsUser: 1}}`, manager, one + "securityContext.runAsUser", "1"},
	{"", `podAnnotations: {a: b}`, manager, "spec.template.metadata.annotations", "a: b"},
	{"labels of the selector stay", `podLabels: {a: b, control-plane: c}`, manager, "spec.template.metadata.labels",
		"a: b\ncluster.x-k8s.io/provider: capi-operator\ncontrol-plane: controller-manager"},
	{"", `nodeSelector: {a: b}`, manager, pod + "nodeSelector", "a: b"},
	{"", `affinity: {podAntiAffinity: {}}`, manager, pod + "affinity", "podAntiAffinity: {}"},
	{"", `topologySpreadConstraints: [{maxSkew: 1}]`, manager, pod + "topologySpreadConstraints", "- maxSkew: 1"},
	{"", `priorityClassName: p`, manager, pod + "priorityClassName", "p"},
	{"they replace the usual ones", `tolerations: [{operator: Exists}]`, manager, pod + "tolerations", "- operator: Exists"},
	{"", `podDnsPolicy: None`, manager, pod + "dnsPolicy", "None"},
	{"", `podDnsConfig: {nameservers: [10.0.0.1]}`, manager, pod + "dnsConfig", "nameservers:\n- 10.0.0.1"},

	{"an entry without fields", `core: {cluster-api: {}}`, "CoreProvider cluster-api", "spec", "{}"},
	{"an empty entry", `core: {cluster-api: }`, "CoreProvider cluster-api", "metadata.namespace", "capi-system"},
	{"the version", `bootstrap: {kubeadm: {version: v1.7.4}}`, "BootstrapProvider kubeadm", "spec", "version: v1.7.4"},
	{"the namespace of clusterctl init", `controlPlane: {kubeadm: {}}`, "ControlPlaneProvider kubeadm", "metadata.namespace", "capi-kubeadm-control-plane-system"},
	{"the namespace of a provider that is not in this release", `infrastructure: {aws: {}}`, "InfrastructureProvider aws", "metadata.namespace", "aws-infrastructure-system"},
	{"a namespace", `addon: {helm: {namespace: n1}}`, "AddonProvider helm", "metadata.namespace", "n1"},
	{"the namespace is created", `ipam: {in-cluster: {namespace: n1}}`, "Namespace n1", "metadata.annotations",
		"argocd.argoproj.io/sync-wave: \"1\"\nhelm.sh/hook: post-install,post-upgrade\nhelm.sh/hook-delete-policy: never\nhelm.sh/hook-weight: \"1\"\nhelm.sh/resource-policy: keep"},
	{"the namespace is not created", `runtimeExtension: {test: {namespace: n1, createNamespace: false}}`, "Namespace n1", "", ""},
	{"that of the chart exists", `runtimeExtension: {test: {namespace: capi-operator-system}}`, "Namespace capi-operator-system", "", ""},
	{"not enabled", `infrastructure: {aws: {enabled: false}}`, "InfrastructureProvider aws", "", ""},
	{"core by default", `ipam: {in-cluster: {}}`, "CoreProvider cluster-api", "metadata.namespace", "capi-system"},
	{"no bootstrap provider for IPAM", `ipam: {in-cluster: {}}`, "BootstrapProvider kubeadm", "", ""},
	{"a bootstrap provider for infrastructure", `infrastructure: {in-memory: {}}`, "BootstrapProvider kubeadm", "metadata.namespace", "capi-kubeadm-bootstrap-system"},
	{"a control plane provider for infrastructure", `infrastructure: {in-memory: {}}`, "ControlPlaneProvider kubeadm", "spec", "{}"},
	{"another bootstrap provider", `{infrastructure: {in-memory: {}}, bootstrap: {talos: {}}}`, "BootstrapProvider kubeadm", "", ""},
	{"no core provider", `{infrastructure: {in-memory: {}}, core: {cluster-api: {enabled: false}}}`, "CoreProvider cluster-api", "", ""},
	{"nothing without providers", ``, "ConfigMap capi-operator-providers", "", ""},
	{"gates of a type", `{core: {cluster-api: {}}, manager: {featureGates: {core: {ClusterTopology: true}}}}`, "CoreProvider cluster-api", "spec",
		"manager:\n  featureGates:\n    ClusterTopology: true"},
	{"gates of a provider", `{infrastructure: {a: {}, b: {}}, manager: {featureGates: {infrastructure: {X: true, b: {X: false, Z: true}}}}}`,
		"InfrastructureProvider b", "spec.manager.featureGates", "X: false\nZ: true"},
	{"gates of another provider", `{infrastructure: {a: {}, b: {}}, manager: {featureGates: {infrastructure: {X: true, b: {X: false}}}}}`,
		"InfrastructureProvider a", "spec.manager.featureGates", "X: true"},
	{"gates of an entry", `{core: {cluster-api: {manager: {verbosity: 2, featureGates: {X: false}}}}, manager: {featureGates: {core: {X: true, Z: true}}}}`,
		"CoreProvider cluster-api", "spec.manager", "featureGates:\n  X: false\n  Z: true\nverbosity: 2"},
	{"gates of a default provider", `{ipam: {in-cluster: {}}, manager: {featureGates: {core: {X: true}}}}`, "CoreProvider cluster-api", "spec.manager.featureGates", "X: true"},
	{"a Secret for all", `{core: {cluster-api: {}}, configSecret: {name: s, namespace: n1}}`, "CoreProvider cluster-api", "spec.configSecret", "name: s\nnamespace: n1"},
	{"another Secret", `{core: {cluster-api: {configSecret: {name: o}}}, configSecret: {name: s}}`, "CoreProvider cluster-api", "spec.configSecret", "name: o"},
	{"a Secret by its name", `{core: {cluster-api: {secretName: o}}, configSecret: {name: s}}`, "CoreProvider cluster-api", "spec", "secretName: o"},
	{"other fields of the spec", `core: {cluster-api: {paused: true, fetchConfig: {oci: "r/x"}, manifestPatches: ["a: b\nc: d\n"],
		additionalDeployments: {d: {deployment: {replicas: 1234567}}}}}`, "CoreProvider cluster-api", "spec",
		"additionalDeployments:\n  d:\n    deployment:\n      replicas: 1234567\nfetchConfig:\n  oci: r/x\nmanifestPatches:\n- |\n  a: b\n  c: d\npaused: true"},
	{"the core provider is created before the others", `core: {cluster-api: {version: v1.7.4}}`, "CoreProvider cluster-api", "metadata.annotations",
		"argocd.argoproj.io/sync-wave: \"2\"\nhelm.sh/hook: post-install,post-upgrade\nhelm.sh/hook-delete-policy: never\nhelm.sh/hook-weight: \"2\"\n" +
			"helm.sh/resource-policy: keep\noperator.cluster.x-k8s.io/declared-spec: '{\"version\":\"v1.7.4\"}'"},
	{"changes are declared", `core: {cluster-api: {manifestPatches: ["a: b\n"]}}`, "ConfigMap capi-operator-providers", "data",
		"CoreProvider.cluster-api: |\n  apiVersion: operator.cluster.x-k8s.io/v1alpha2\n  kind: CoreProvider\n  metadata:\n    name: cluster-api\n" +
			"    namespace: capi-system\n  spec:\n    manifestPatches:\n    - |\n      a: b"},
	{"ordinary objects", `{ipam: {in-cluster: {}}, enableHelmHook: false}`, "IPAMProvider in-cluster", "metadata.annotations",
		"argocd.argoproj.io/sync-wave: \"3\"\nhelm.sh/resource-policy: keep"},
	{"ordinary objects are not declared", `{ipam: {in-cluster: {}}, enableHelmHook: false}`, "ConfigMap capi-operator-providers", "", ""},
}

func TestChartValues(t *testing.T) {
	c := ofRelease().withoutDefinitions(t)
	for _, tc := range valueTests {
		t.Run(tc.reason+" "+tc.values, func(t *testing.T) {
			objects, _, err := render(t, c, tc.values, "")
			if err != nil {
				t.Fatal(err)
			}
			checkAt(t, objects, tc.object, tc.path, tc.want)
		})
	}
}

// checkAt checks the part of an object at a path; without a path, that the object does not exist.
func checkAt(t *testing.T, objects map[string]*unstructured.Unstructured, object, path, want string) {
	t.Helper()
	o := objects[object]
	if path == "" {
		if o != nil {
			t.Errorf("%s must not exist", object)
		}
		return
	}
	if o == nil {
		t.Fatalf("%s does not exist", object)
	}
	if diff := cmp.Diff(want, strings.TrimSpace(text(t, at(o.Object, path)))); diff != "" {
		t.Errorf("%s of %s: -want +got:\n%s", path, object, diff)
	}
}

// at returns what is at a path of fields and indexes.
func at(value any, path string) any {
	for field := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[field]
		case []any:
			i, err := strconv.Atoi(field)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		}
	}
	return value
}

// TestEveryValueIsTested checks that no value is without a test of what it renders to.
func TestEveryValueIsTested(t *testing.T) {
	tested := map[string]bool{}
	for _, tc := range valueTests {
		var values map[string]any
		if err := yaml.Unmarshal([]byte(tc.values), &values); err != nil {
			t.Fatal(err)
		}
		leaves("", values, func(path string) {
			for ; path != ""; path = path[:max(0, strings.LastIndex(path, "."))] {
				tested[path] = true
			}
		})
	}
	leaves("", ofRelease().withoutDefinitions(t).Values, func(path string) {
		if !tested[path] {
			t.Errorf("value %s is not in valueTests", path)
		}
	})
}

func leaves(path string, value any, do func(path string)) {
	fields, ok := value.(map[string]any)
	if !ok || len(fields) == 0 {
		do(path)
		return
	}
	for name, field := range fields {
		leaves(strings.TrimPrefix(path+"."+name, "."), field, do)
	}
}

// TestChartWithProviders checks what is rendered in a cluster with provider objects.
func TestChartWithProviders(t *testing.T) {
	const live = `
apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: InfrastructureProvider
metadata: {name: docker, namespace: docker-infrastructure-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: capi-system}
`
	c := ofRelease().withoutDefinitions(t)
	for _, tc := range []struct{ reason, values, object, path, want string }{
		{"an object that exists is not created", `infrastructure: {docker: {}}`, "InfrastructureProvider docker", "", ""},
		{"it is declared where it exists", `{infrastructure: {docker: {version: v1.7.4}}, core: {cluster-api: {enabled: false}},
			bootstrap: {a: {enabled: false}}, controlPlane: {a: {enabled: false}}}`, "ConfigMap capi-operator-providers", "data",
			"InfrastructureProvider.docker: |\n  apiVersion: operator.cluster.x-k8s.io/v1alpha2\n  kind: InfrastructureProvider\n  metadata:\n" +
				"    name: docker\n    namespace: docker-infrastructure-system\n  spec:\n    version: v1.7.4"},
		{"another namespace is another object", `infrastructure: {docker: {namespace: other}}`, "InfrastructureProvider docker", "metadata.namespace", "other"},
		{"others are created", `infrastructure: {docker: {}}`, "CoreProvider cluster-api", "metadata.namespace", "capi-system"},
		{"a Namespace that exists is not created", `core: {cluster-api: {}}`, "Namespace capi-system", "", ""},
		{"ordinary objects are always rendered", `{infrastructure: {docker: {}}, enableHelmHook: false}`, "InfrastructureProvider docker", "metadata.namespace", "docker-infrastructure-system"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			objects, _, err := render(t, c, tc.values, live)
			if err != nil {
				t.Fatal(err)
			}
			checkAt(t, objects, tc.object, tc.path, tc.want)
		})
	}
}

func TestInvalidValues(t *testing.T) {
	c := ofRelease().withoutDefinitions(t)
	for _, tc := range []struct{ values, want string }{
		{`infrastucture: {aws: {}}`, "additional properties 'infrastucture' not allowed"},
		{`infrastructure: {aws: {verzion: v1.0.0}}`, "at '/infrastructure/aws': additional properties 'verzion' not allowed"},
		{`infrastructure: {aws: true}`, "at '/infrastructure/aws': got boolean, want null or object"},
		{`infrastructure: {AWS: {}}`, "invalid propertyName 'AWS'"},
		{`infrastructure: {aws: {enabled: "yes"}}`, "at '/infrastructure/aws/enabled': got string, want boolean"},
		{`infrastructure: {aws: {version: 1.7}}`, "at '/infrastructure/aws/version': got number, want string"},
		{`infrastructure: {aws: {namespace: A}}`, "at '/infrastructure/aws/namespace': 'A' does not match pattern"},
		{`infrastructure: {aws: {manager: {featureGates: {X: 1}}}}`, "at '/infrastructure/aws/manager/featureGates/X': got number, want boolean"},
		{`infrastructure: {aws: {deployment: {containers: [{image: {}}]}}}`, "at '/infrastructure/aws/deployment/containers/0': missing property 'name'"},
		{`infrastructure: {aws: {fetchConfig: {uri: x}}}`, "at '/infrastructure/aws/fetchConfig': additional properties 'uri' not allowed"},
		{`manager: {featureGates: {core: {X: "true"}}}`, "at '/manager/featureGates/core/X': got string, want boolean or object"},
		{`{core: {cluster-api: {}}, manager: {featureGates: {kern: {X: true}}}}`, "manager.featureGates.kern: not a type of providers, which are core, bootstrap, controlPlane,"},
		{`configSecret: {namespace: n1}`, "at '/configSecret': properties 'name' required, if 'namespace' exists"},
		{`image: {manager: {digest: abc}}`, "at '/image/manager/digest': 'abc' does not match pattern"},
		{`image: {repository: x}`, "at '/image': additional properties 'repository' not allowed"},
		{`replicaCount: "2"`, "at '/replicaCount': got string, want integer"},
		{`logLevel: -1`, "at '/logLevel': minimum: got -1, want 0"},
		{`healthAddr: "9440"`, "at '/healthAddr': '9440' does not match pattern"},
		{`watchConfigSecret: true`, "additional properties 'watchConfigSecret' not allowed"},
		{`env: [{name: A}]`, "at '/env': got array, want object"},
		{`podDnsPolicy: Cluster`, "at '/podDnsPolicy': value must be one of"},
	} {
		t.Run(tc.values, func(t *testing.T) {
			if _, _, err := render(t, c, tc.values, ""); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	c := ofRelease().withoutDefinitions(t)
	for _, tc := range []struct{ values, want string }{
		{``, "No providers are declared"},
		{`infrastructure: {in-memory: {version: v2.0.0}}`, "InfrastructureProvider capim-system/in-memory v2.0.0\n"},
		{`infrastructure: {in-memory: {}}`, "kubectl wait --for condition=Ready --timeout 300s -n capi-system coreprovider/cluster-api\n"},
	} {
		if _, notes, err := render(t, c, tc.values, ""); err != nil || !strings.Contains(notes, tc.want) {
			t.Errorf("values %s: want notes with %s, got %v, %v", tc.values, tc.want, notes, err)
		}
	}
}

// TestLint checks that helm lint has nothing to warn about.
func TestLint(t *testing.T) {
	packaged, _ := ofRelease().packaged(t)
	dir := t.TempDir()
	if err := chartutil.Expand(dir, bytes.NewReader(packaged.Content)); err != nil {
		t.Fatal(err)
	}
	for _, values := range []string{`{}`, `{"infrastructure": {"in-memory": {}}}`} {
		var given map[string]any
		if err := json.Unmarshal([]byte(values), &given); err != nil {
			t.Fatal(err)
		}
		result := lint.RunAll(filepath.Join(dir, "cluster-api-operator"), given, "capi-operator-system")
		for _, m := range result.Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("values %s: %v", values, m)
			}
		}
	}
}

// TestChartArchive checks name, version, and that the same input is the same archive, in the repository and among the files of the release.
// Helm stores the archive's files and what is rendered in a Secret, which is limited to 1 MiB.
func TestChartArchive(t *testing.T) {
	const name = "cluster-api-operator-2.0.5.tgz"
	var archives [][]byte
	for range 2 {
		out := t.TempDir()
		assets := filepath.Join(out, "assets")
		if err := run(t.Context(), []string{"--root", root, "--version", "v2.0.5", "--out", out, "--assets", assets}, os.Getenv); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{filepath.Join(out, "cluster-api", "v2.0.5", name), filepath.Join(assets, name)} {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			archives = append(archives, raw)
		}
	}
	for _, other := range archives[1:] {
		if !bytes.Equal(archives[0], other) {
			t.Error("the archives differ")
		}
	}
	c, err := loader.LoadArchive(bytes.NewReader(archives[0]))
	if err != nil {
		t.Fatal(err)
	}
	if c.Metadata.Version != "2.0.5" || c.Metadata.AppVersion != "v2.0.5" || c.ChartFullPath() != "cluster-api-operator" {
		t.Errorf("metadata: %+v", c.Metadata)
	}
	objects, _, err := render(t, c, "infrastructure: {in-memory: {}}", "")
	if err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(helmrelease.Release{Chart: c, Manifest: string(join(slices.Collect(maps.Values(objects))))})
	if err != nil {
		t.Fatal(err)
	}
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	if _, err := w.Write(stored); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	if size := base64.StdEncoding.EncodedLen(compressed.Len()); size > 900_000 {
		t.Errorf("Helm stores %d bytes", size)
	} else {
		t.Logf("Helm stores %d bytes", size)
	}
}
