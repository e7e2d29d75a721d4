package journey

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// connect returns a client for the management cluster.
func (o *operatorCluster) connect() client.Client {
	o.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig())
	testenv.Must(o.t, err)
	config.QPS = -1
	c, err := client.New(config, client.Options{})
	testenv.Must(o.t, err)
	return c
}

// providerConditions returns the conditions of a provider object by type, each as "False ComponentsFetchError: ...".
func providerConditions(t *testing.T, reader client.Reader, kind, namespace, name string) map[string]string {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(inventory.DeclarationKind(clusterctlv1.ProviderType(kind)))
	testenv.Must(t, reader.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, u))
	list, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	testenv.Must(t, err)
	found := map[string]string{}
	for _, c := range list {
		if c, ok := c.(map[string]any); ok {
			found[fmt.Sprint(c["type"])] = strings.TrimSuffix(fmt.Sprintf("%v %v: %v", c["status"], c["reason"], cmp.Or(c["message"], any(""))), ": ")
		}
	}
	return found
}

// waitForCondition waits until a condition of a provider object contains all words.
func waitForCondition(t *testing.T, reader client.Reader, kind, namespace, name, condition string, words ...string) {
	t.Helper()
	testenv.Eventually(t, kind+" "+name+" has condition "+condition, func() error {
		all := providerConditions(t, reader, kind, namespace, name)
		for _, word := range words {
			if !strings.Contains(all[condition], word) {
				return fmt.Errorf("%q is not in condition %s: %v", word, condition, all)
			}
		}
		return nil
	})
}

// newOnlineCluster returns a management cluster with the operator and the core provider that reaches only the fakeNetwork.
func newOnlineCluster(t *testing.T, tools *Tools) (*operatorCluster, *fakeNetwork) {
	t.Helper()
	n := newFakeNetwork(t)
	o := &operatorCluster{NewStandalone(t, tools, n.env...), t}
	o.install()
	o.kubectl("", "create", "namespace", corePlace)
	o.declare(declaredProviders()[0], "v2.0.0")
	o.wait("condition=Ready", corePlace, declaredProviders()[0].object())
	return o, n
}

// example is one of the examples of the proposal of the operator, as it is there.
type example struct {
	reason string
	kind, namespace, name, version,
	object string
	// secret is the example's own Secret; empty: it has only the name of one.
	secret string
	// source is what the operator tries without a network.
	source string
	// isAgain is set if another example has the same provider.
	isAgain bool
	// isOnline is set if the example works when the network does; otherwise, its release comes from a ConfigMap.
	isOnline bool
	// deployment are parts of the Deployment that the example leads to.
	deployment []string
}

const noNetwork = "check the connection of the operator, or set spec.fetchConfig to a source that it can reach"

func examples() []example { return append(examplesOfFields(), examplesOfSources()...) }

// examplesOfFields are those of fields of the spec.
func examplesOfFields() []example {
	return []example{
		{
			reason: "1: controller flags",
			kind:   "InfrastructureProvider", namespace: "capa-system", name: "aws", version: "v0.6.0", source: "repos/kubernetes-sigs/cluster-api-provider-aws/releases/tags/v0.6.0",
			secret: `
apiVersion: v1
kind: Secret
metadata:
 name: aws-variables
 namespace: capa-system
type: Opaque
`, object: `
kind: InfrastructureProvider
metadata:
 name: aws
 namespace: capa-system
spec:
 version: v0.6.0
 secretName: aws-variables
 manager:
   # These top level controller manager flags, supported by all the providers.
   # These flags come with sensible defaults, thus requiring no or minimal
   # changes for the most common scenarios.
   metricsAddress: ":8181"
   syncPeriod: 660
 deployment:
   containers:
   - name: manager
     args:
         # These are controller flags that are specific to a provider; usage
         # is reserved for advanced scenarios only.
         awscluster-concurrency: 12
         awsmachine-concurrency: 11
`, deployment: []string{`"--awscluster-concurrency=12"`, `"--awsmachine-concurrency=11"`, `"--metrics-bind-addr=:8181"`, `"--sync-period=11m0s"`, `"image":"registry.example.com/x/controller:v0.6.0"`},
		},
		{
			reason: "2: the image", isAgain: true,
			kind: "InfrastructureProvider", namespace: "capa-system", name: "aws", version: "v0.6.0", source: "repos/kubernetes-sigs/cluster-api-provider-aws/releases/tags/v0.6.0",
			object: `
kind: InfrastructureProvider
metadata:
 name: aws
 namespace: capa-system
spec:
 version: v0.6.0
 secretName: aws-variables
 deployment:
   containers:
   - name: manager
     image:
       repository: gcr.io/myregistry
       name: capa-controller
       tag: v0.6.0-foo
`, deployment: []string{`"image":"gcr.io/myregistry/capa-controller:v0.6.0-foo"`},
		},
		{
			reason: "3: limits and requests",
			kind:   "ControlPlaneProvider", namespace: "capi-kubeadm-control-plane-system", name: "kubeadm", version: "v0.3.10", source: "repos/kubernetes-sigs/cluster-api/releases/tags/v0.3.10",
			object: `
kind: ControlPlaneProvider
metadata:
 name: kubeadm
 namespace: capi-kubeadm-control-plane-system
spec:
 version: v0.3.10
 secretName: capi-variables
 deployment:
   containers:
   - name: manager
     resources:
       limits:
         cpu: 100m
         memory: 30Mi
       requests:
         cpu: 100m
         memory: 20Mi
`, deployment: []string{`"resources":{"limits":{"cpu":"100m","memory":"30Mi"},"requests":{"cpu":"100m","memory":"20Mi"}}`},
		},
	}
}

// examplesOfSources are those of where releases are.
func examplesOfSources() []example {
	return []example{
		{
			reason: "4: another repository",
			kind:   "InfrastructureProvider", namespace: "capz-system", name: "myazure", version: "v0.4.9", source: "repos/myorg/awesome-azure-provider/releases/tags/v0.4.9", isOnline: true,
			object: `
kind: InfrastructureProvider
metadata:
 name: myazure
 namespace: capz-system
spec:
 version: v0.4.9
 secretName: azure-variables
 fetchConfig:
   url: https://github.com/myorg/awesome-azure-provider/releases
`, deployment: []string{`"image":"registry.example.com/x/controller:v0.4.9"`},
		},
		{
			reason: "5: the built-in repository",
			kind:   "InfrastructureProvider", namespace: "capv-system", name: "vsphere", version: "v0.4.9", source: "repos/kubernetes-sigs/cluster-api-provider-vsphere/releases/tags/v0.4.9", isOnline: true,
			object: `
kind: InfrastructureProvider
metadata:
 name: vsphere
 namespace: capv-system
spec:
 version: v0.4.9
 secretName: vsphere-variables
`, deployment: []string{`"image":"registry.example.com/x/controller:v0.4.9"`},
		},
	}
}

// airGap is the example for environments without a network; its ConfigMaps have only comments.
const airGap = `
apiVersion: v1
kind: ConfigMap
metadata:
 labels:
   provider-components: azure
 name: v0.4.9
 namespace: capz-system
data:
 components: |
 # components for v0.4.9 yaml goes here
 metadata: |
 # metadata information goes here
---
apiVersion: v1
kind: ConfigMap
metadata:
 labels:
   provider-components: azure
 name: v0.4.8
 namespace: capz-system
data:
 components: |
 # components for v0.4.8 yaml goes here
 metadata: |
 # metadata information goes here
---
apiVersion: %s
kind: InfrastructureProvider
metadata:
 name: azure
 namespace: capz-system
spec:
 version: v0.4.9
 secretName: azure-variables
 fetchConfig:
   selector:
     matchLabels:
       provider-components: azure
`

// simpleRelease is a release of a provider with one Deployment.
func simpleRelease(name, version string) (components, metadata string) {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: x-system}
spec:
  selector: {matchLabels: {control-plane: x}}
  template:
    metadata: {labels: {control-plane: x}}
    spec:
      containers:
      - {name: manager, image: "registry.example.com/x/controller:%s", args: [--leader-elect]}
`, simpleDeployment(name), version), simpleMetadata("v1beta1")
}

func simpleDeployment(name string) string { return "ca-" + name + "-controller-manager" }

// simpleMetadata has the series of all versions of simple releases.
func simpleMetadata(contract string) string {
	text := "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n"
	for _, series := range []string{"{major: 0, minor: 3,", "{major: 0, minor: 4,", "{major: 0, minor: 6,", "{major: 1, minor: 0,", "{major: 2, minor: 0,"} {
		text += "- " + series + " contract: " + contract + "}\n"
	}
	return text
}

// simpleConfigMap returns a ConfigMap with a simple release of a provider, which is its label.
func simpleConfigMap(namespace, name, version string) string {
	components, metadata := simpleRelease(name, version)
	return fmt.Sprintf(`
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": %q, "namespace": %q, "labels": {"provider-components": %q}}, "data": {"components": %q, "metadata": %q}}
`, version, namespace, name, components, metadata)
}

// fails declares an example without a network, and follows what its conditions say until only that fails.
func (e example) fails(o *operatorCluster, c client.Client) {
	o.t.Helper()
	for _, version := range []string{"v1alpha1", "v1alpha2"} { // The proposal has no version.
		o.kubectl("apiVersion: operator.cluster.x-k8s.io/"+version+e.object, "apply", "-f", "-")
	}
	if e.secret != "" {
		o.kubectl(e.secret, "apply", "-f", "-")
	} else {
		_, after, _ := strings.Cut(e.object, "secretName:")
		secret := strings.Fields(after)[0]
		waitForCondition(o.t, c, e.kind, e.namespace, e.name, "ProviderInstalled", "False ComponentsFetchError: spec.secretName: Secret "+e.namespace+"/"+secret+" does not exist: create it")
		o.kubectl("", "create", "secret", "generic", secret, "-n", e.namespace)
	}
	waitForCondition(o.t, c, e.kind, e.namespace, e.name, "ProviderInstalled", "False ComponentsFetchError: ", "https://"+githubAPI+"/"+e.source, noNetwork)
}

// works waits until the example is installed, after its release is moved to a ConfigMap if it needs one.
func (e example) works(o *operatorCluster, c client.Client) {
	o.t.Helper()
	if !e.isOnline {
		o.kubectl(simpleConfigMap(e.namespace, e.name, e.version), "apply", "-f", "-")
		o.kubectl("", "patch", strings.ToLower(e.kind), e.name, "-n", e.namespace, "--type", "merge",
			"-p", `{"spec": {"fetchConfig": {"selector": {"matchLabels": {"provider-components": "`+e.name+`"}}}}}`)
	}
	waitForCondition(o.t, c, e.kind, e.namespace, e.name, "ProviderInstalled", "True")
	d := deploymentOf(o.t, c, e.namespace, simpleDeployment(e.name))
	raw, err := json.Marshal(d.Spec)
	testenv.Must(o.t, err)
	o.says(string(raw), e.deployment...)
	// The image does not exist, which the condition reports, too.
	waitForCondition(o.t, c, e.kind, e.namespace, e.name, "Ready", "False MinimumReplicasUnavailable: Waiting for Deployment "+d.Name+" to be available")
}

func deploymentOf(t *testing.T, c client.Client, namespace, name string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	testenv.Must(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, d))
	return d
}

// TestOperatorMeetsUsers declares what users may write: the examples of the proposal of the operator, and mistakes; and lets downloads fail. All that, but
// for the API server, happens on a network of its own.
func TestOperatorMeetsUsers(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	o, n := newOnlineCluster(t, shared.Management(t).Tools)
	c := o.connect()
	t.Run("the examples of the proposal", func(t *testing.T) { testExamples(&operatorCluster{o.Standalone, t}, c, n) })
	t.Run("the example for an air gap", func(t *testing.T) { testAirGap(&operatorCluster{o.Standalone, t}, c) })
	t.Run("mistakes", func(t *testing.T) { testMistakes(&operatorCluster{o.Standalone, t}, c) })
	t.Run("downloads that fail", func(t *testing.T) { testDownloads(&operatorCluster{o.Standalone, t}, c, n) })
	t.Run("an upgrade whose download fails", func(t *testing.T) { testInterruptedUpgrade(&operatorCluster{o.Standalone, t}, c, n) })
}

func testExamples(o *operatorCluster, c client.Client, n *fakeNetwork) {
	published := map[string]releases{}
	for _, e := range examples() {
		o.kubectl(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", e.namespace), "apply", "-f", "-")
		if path := strings.Split(e.source, "/"); e.isOnline {
			components, metadata := simpleRelease(e.name, e.version)
			published[path[1]+"/"+path[2]] = releases{e.version: {"infrastructure-components.yaml": components, "metadata.yaml": metadata}}
		}
	}
	again := slices.DeleteFunc(examples(), func(e example) bool { return !e.isAgain })
	first := slices.DeleteFunc(examples(), func(e example) bool { return e.isAgain })
	for _, e := range first {
		e.fails(o, c)
	}
	n.set(githubAPI, serveGitHub(published))
	for _, e := range first {
		e.works(o, c)
	}
	n.set(githubAPI, nil)
	for _, e := range again {
		o.kubectl("", "delete", strings.ToLower(e.kind)+"/"+e.name, "-n", e.namespace)
		o.kubectl("", "delete", "secret,configmap", "--all", "-n", e.namespace)
		e.fails(o, c)
		e.works(o, c)
	}
}

// theAirGap declares the example, whose ConfigMaps have only comments, and then gives one of them a release.
func testAirGap(o *operatorCluster, c client.Client) {
	const namespace, name = "capz-system", "azure"
	for _, version := range []string{"v1alpha1", "v1alpha2"} {
		o.kubectl(fmt.Sprintf(airGap, "operator.cluster.x-k8s.io/"+version), "apply", "-f", "-")
	}
	waitForCondition(o.t, c, "InfrastructureProvider", namespace, name, "ProviderInstalled", "False ComponentsFetchError: metadata.yaml of infrastructure-azure v0.4.9", "has no release series")
	o.kubectl(simpleConfigMap(namespace, name, "v0.4.9"), "apply", "-f", "-")
	waitForCondition(o.t, c, "InfrastructureProvider", namespace, name, "ProviderInstalled", "True")
	if image := deploymentOf(o.t, c, namespace, simpleDeployment(name)).Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/x/controller:v0.4.9" {
		o.t.Errorf("image %s is not that of the version", image)
	}
}
