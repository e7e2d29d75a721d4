package components

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/template"
)

func mine() packages.Provider {
	return packages.Provider{Name: "mine", Type: clusterctlv1.InfrastructureProviderType}
}

const everything = `
apiVersion: v1
kind: Namespace
metadata: {name: old}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.x.io, annotations: {cert-manager.io/inject-ca-from: old/cert}}
spec: {group: x.io, names: {kind: Thing}, conversion: {webhook: {clientConfig: {service: {name: svc, namespace: old}}}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: crb}
subjects: [{kind: ServiceAccount, name: sa, namespace: old}, {kind: Group, name: g}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: vwc, annotations: {cert-manager.io/inject-ca-from: old/cert}}
webhooks: [{name: a, clientConfig: {service: {name: svc, namespace: old}}}, {name: b, clientConfig: {url: https://x}}]
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: cert, namespace: old}
spec: {dnsNames: [svc.old.svc, svc.old.svc.cluster.local]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: old, labels: {keep: me}}
spec:
  template:
    spec:
      containers: [{name: manager, image: "reg/m:v1", args: ["--x=${X:=1}"]}]
      initContainers: [{name: init, image: "reg/i@sha256:abc"}]
`

const everythingWanted = `apiVersion: v1
kind: Namespace
metadata:
  labels:
    cluster.x-k8s.io/provider: infrastructure-mine
    clusterctl.cluster.x-k8s.io: ""
  name: new
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    cert-manager.io/inject-ca-from: new/cert
  labels:
    cluster.x-k8s.io/provider: infrastructure-mine
    clusterctl.cluster.x-k8s.io: ""
  name: things.x.io
spec:
  conversion:
    webhook:
      clientConfig:
        service:
          name: svc
          namespace: new
  group: x.io
  names:
    kind: Thing
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  labels:
    cluster.x-k8s.io/provider: infrastructure-mine
    clusterctl.cluster.x-k8s.io: ""
  name: crb
subjects:
- kind: ServiceAccount
  name: sa
  namespace: new
- kind: Group
  name: g
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  annotations:
    cert-manager.io/inject-ca-from: new/cert
  labels:
    cluster.x-k8s.io/provider: infrastructure-mine
    clusterctl.cluster.x-k8s.io: ""
  name: vwc
webhooks:
- clientConfig:
    service:
      name: svc
      namespace: new
  name: a
- clientConfig:
    url: https://x
  name: b
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  labels:
    cluster.x-k8s.io/provider: infrastructure-mine
    clusterctl.cluster.x-k8s.io: ""
  name: cert
  namespace: new
spec:
  dnsNames:
  - svc.new.svc
  - svc.new.svc.cluster.local
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    cluster.x-k8s.io/provider: infrastructure-mine
    clusterctl.cluster.x-k8s.io: ""
    keep: me
  name: d
  namespace: new
spec:
  template:
    spec:
      containers:
      - args:
        - --x=7
        image: mirror/m:v2
        name: manager
      initContainers:
      - image: mirror/i@sha256:abc
        name: init
`

func TestNew(t *testing.T) {
	c, err := New(mine(), []byte(everything), Options{
		Version: "v1.0.0", TargetNamespace: "new",
		Variables: func(name string) (string, bool) { return "7", name == "X" },
		Images:    ImageOverrides{"all": {Repository: "mirror/"}, "infrastructure-mine/m": {Tag: "v2"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := manifest.Format(c.Objects)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(everythingWanted, string(got)); diff != "" {
		t.Errorf("objects: -want +got:\n%s", diff)
	}
	one := "1"
	c.Objects = nil
	want := &Components{
		Provider: mine(), Version: "v1.0.0", TargetNamespace: "new",
		Variables: []template.Variable{{Name: "X", Default: &one}},
		Images:    []string{"mirror/i@sha256:abc", "mirror/m:v2"},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("components: -want +got:\n%s", diff)
	}
}

// TestNamespaceOfKinds: a target namespace is set on all objects except those of the kinds that have none.
func TestNamespaceOfKinds(t *testing.T) {
	kinds := map[string]string{
		"Node": "v1", "PersistentVolume": "v1", "PodSecurityPolicy": "policy/v1beta1", "CertificateSigningRequest": "certificates.k8s.io/v1",
		"ClusterRoleBinding": "rbac.authorization.k8s.io/v1", "ClusterRole": "rbac.authorization.k8s.io/v1", "VolumeAttachment": "storage.k8s.io/v1",
		"StorageClass": "storage.k8s.io/v1", "CSIDriver": "storage.k8s.io/v1", "CSINode": "storage.k8s.io/v1",
		"ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
		"CustomResourceDefinition": "apiextensions.k8s.io/v1", "PriorityClass": "scheduling.k8s.io/v1", "RuntimeClass": "node.k8s.io/v1",
	}
	raw := "{apiVersion: example.org/v1, kind: Mine, metadata: {name: x}}\n"
	want := map[string]string{"Namespace": "", "Mine": "new"}
	for kind, version := range kinds {
		raw += fmt.Sprintf("---\n{apiVersion: %s, kind: %s, metadata: {name: x}}\n", version, kind)
		want[kind] = ""
	}
	c, err := New(mine(), []byte(raw), Options{Version: "v1.0.0", TargetNamespace: "new"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, o := range c.Objects {
		got[o.GetKind()] = o.GetNamespace()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("namespaces by kind: -want +got:\n%s", diff)
	}
}

// TestImagesOfDaemonSets: they are overridden like those of Deployments; those of other kinds are not.
func TestImagesOfDaemonSets(t *testing.T) {
	raw := "{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n"
	for _, kind := range []string{"DaemonSet", "Deployment", "StatefulSet"} {
		raw += fmt.Sprintf("---\n{apiVersion: apps/v1, kind: %s, metadata: {name: x, namespace: a}, spec: {template: {spec: {containers: [{name: c, image: reg.io/%s:v1}]}}}}\n", kind, strings.ToLower(kind))
	}
	c, err := New(mine(), []byte(raw), Options{Version: "v1.0.0", Images: ImageOverrides{"all": {Repository: "mirror"}}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mirror/daemonset:v1", "mirror/deployment:v1"}, c.Images); diff != "" {
		t.Errorf("images: -want +got:\n%s", diff)
	}
}

func TestNewNamespaceAndErrors(t *testing.T) {
	const ns, cm = "{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\n", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n---\n"
	tests := map[string]struct {
		reason, in, target string
		want               []string
		err                string
	}{
		"Own":      {reason: "The Namespace in the manifests is the default.", in: cm + ns, want: []string{"ConfigMap a/c", "Namespace a"}},
		"Renamed":  {reason: "A target namespace renames it.", in: ns + cm, target: "b", want: []string{"Namespace b", "ConfigMap b/c"}},
		"Added":    {reason: "A missing Namespace is prepended.", in: cm, target: "b", want: []string{"Namespace b", "ConfigMap b/c"}},
		"Missing":  {reason: "Without either there is no namespace to install to.", in: cm, err: "set one with --target-namespace"},
		"Two":      {reason: "Two Namespaces are ambiguous.", in: ns + ns, err: "contain 2 Namespaces (a, a)"},
		"BadName":  {reason: "A namespace must be valid.", in: ns, target: "B!", err: `invalid target namespace "B!"`},
		"Variable": {reason: "The error lists all variables without a value, and the provider.", in: ns + "x: ${B} ${A}", err: "cannot process the components of infrastructure-mine v1: no value for required variables A, B"},
		"NoImage":  {reason: "The error names a container without image.", in: ns + "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: {containers: [{name: m}]}}}}", err: "container m of Deployment d has no image"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := New(mine(), []byte(tc.in), Options{
				Version: "v1", TargetNamespace: tc.target, Variables: func(string) (string, bool) { return "", false },
			})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s\nNew(): want error %q, got: %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range c.Objects {
				got = append(got, manifest.Describe(&c.Objects[i]))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nNew(): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestQuestions(t *testing.T) {
	c, err := New(mine(), []byte(everything), Options{Version: "v1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"d"}, c.ManagerDeployments()); diff != "" {
		t.Errorf("ManagerDeployments(): -want +got:\n%s", diff)
	}
	if !c.NeedsCertManager() {
		t.Error("NeedsCertManager(): a Certificate needs cert-manager")
	}
	wantInventory := &clusterctlv1.Provider{
		TypeMeta: metav1.TypeMeta{APIVersion: "clusterctl.cluster.x-k8s.io/v1alpha3", Kind: "Provider"},
		ObjectMeta: metav1.ObjectMeta{Name: "infrastructure-mine", Namespace: "old", Labels: map[string]string{
			"clusterctl.cluster.x-k8s.io": "", "clusterctl.cluster.x-k8s.io/core": "inventory", "cluster.x-k8s.io/provider": "infrastructure-mine",
		}},
		ProviderName: "mine", Type: "InfrastructureProvider", Version: "v1.0.0",
	}
	if diff := cmp.Diff(wantInventory, c.Inventory()); diff != "" {
		t.Errorf("Inventory(): -want +got:\n%s", diff)
	}
	if err := c.ValidateCRDNames(); err != nil {
		t.Errorf("ValidateCRDNames(): %v", err)
	}
	c.Objects[1].SetName("thing.x.io")
	if err := c.ValidateCRDNames(); err == nil || !strings.Contains(err.Error(), "must be named things.x.io") {
		t.Errorf("ValidateCRDNames(): want an error with the right name, got %v", err)
	}
	c.Objects[1].SetAnnotations(map[string]string{clusterctlv1.SkipCRDNamePreflightCheckAnnotation: ""})
	if err := c.ValidateCRDNames(); err != nil {
		t.Errorf("ValidateCRDNames(): the annotation must allow any name, got %v", err)
	}
}

func TestImageOverrides(t *testing.T) {
	overrides := ImageOverrides{
		"all":                {Repository: "mirror.example:5000/x/"},
		"cert-manager":       {Tag: "v9"},
		"cert-manager/cai":   {Repository: "other"},
		"infrastructure-aws": {Repository: "aws", Tag: "v2"},
	}
	tests := map[string]struct{ reason, component, image, want string }{
		"All":       {reason: "The general override applies to everything.", component: "x", image: "reg.io/a/b:v1", want: "mirror.example:5000/x/b:v1"},
		"Component": {reason: "A component's override is merged over it.", component: "cert-manager", image: "reg.io/a/ctl:v1", want: "mirror.example:5000/x/ctl:v9"},
		"Image":     {reason: "An image's override is merged over both.", component: "cert-manager", image: "reg.io/a/cai:v1", want: "other/cai:v9"},
		"Digest":    {reason: "A digest is kept.", component: "x", image: "reg.io:5000/b@sha256:1", want: "mirror.example:5000/x/b@sha256:1"},
		"Port":      {reason: "A port is not a tag.", component: "x", image: "reg.io:5000/b", want: "mirror.example:5000/x/b"},
		"Short":     {reason: "A bare name gets a repository.", component: "infrastructure-aws", image: "b", want: "aws/b:v2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := overrides.Apply(tc.component, tc.image)
			if err != nil || got != tc.want {
				t.Errorf("%s\nApply(): want %q, got %q, %v", tc.reason, tc.want, got, err)
			}
		})
	}
	for _, image := range []string{"a b", "", "::", "a:", "a@", "r/", "a:b:c", "r/:b", "@sha256:1"} {
		if got, err := overrides.Apply("x", image); err == nil {
			t.Errorf("Apply(): %q is no image, but becomes %q", image, got)
		}
	}
}

func TestInstallOrder(t *testing.T) {
	objects, err := manifest.Parse([]byte(`
{apiVersion: a/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w}}
---
{apiVersion: a/v1, kind: Thing, metadata: {name: t}}
---
{apiVersion: a/v1, kind: Deployment, metadata: {name: d}}
---
{apiVersion: a/v1, kind: CustomResourceDefinition, metadata: {name: b}}
---
{apiVersion: a/v1, kind: CustomResourceDefinition, metadata: {name: a}}
---
{apiVersion: a/v1, kind: Namespace, metadata: {name: ns}}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range InstallOrder(objects) {
		got = append(got, o.GetName())
	}
	if diff := cmp.Diff([]string{"ns", "b", "a", "d", "t", "w"}, got); diff != "" {
		t.Errorf("InstallOrder(): -want +got:\n%s", diff)
	}
}
