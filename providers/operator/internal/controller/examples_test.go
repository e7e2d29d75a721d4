package controller

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// example is one of the examples of the proposal of the operator, as it is there.
type example struct {
	reason                   string
	kind                     clusterctlv1.ProviderType
	namespace, name, version string
	// secret is the name of the Secret.
	secret string
	// spec is what follows the version and the name of the Secret.
	spec string
	// path is what the operator requests from GitHub.
	path string
	// isOnline is set if GitHub has the release; otherwise, it comes from a ConfigMap.
	isOnline bool
	// deployment are parts of the Deployment.
	deployment []string
}

func examples() []example {
	const aws, core = "repos/kubernetes-sigs/cluster-api-provider-aws/releases/tags/v0.6.0", "repos/kubernetes-sigs/cluster-api/releases/tags/v0.3.10"
	return []example{
		{"1: controller flags", "InfrastructureProvider", "capa-system", "aws", "v0.6.0", "aws-variables", `
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
`, aws, false, []string{`"--awscluster-concurrency=12"`, `"--awsmachine-concurrency=11"`, `"--metrics-bind-addr=:8181"`, `"--sync-period=11m0s"`, `"image":"registry.example.com/x/controller:v0.6.0"`}},
		{"2: the image", "InfrastructureProvider", "capa-system", "aws", "v0.6.0", "aws-variables", `
 deployment:
   containers:
   - name: manager
     image:
       repository: gcr.io/myregistry
       name: capa-controller
       tag: v0.6.0-foo
`, aws, false, []string{`"image":"gcr.io/myregistry/capa-controller:v0.6.0-foo"`}},
		{"3: limits and requests", "ControlPlaneProvider", "capi-kubeadm-control-plane-system", "kubeadm", "v0.3.10", "capi-variables", `
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
`, core, false, []string{`"resources":{"limits":{"cpu":"100m","memory":"30Mi"},"requests":{"cpu":"100m","memory":"20Mi"}}`}},
		{"4: another repository", "InfrastructureProvider", "capz-system", "myazure", "v0.4.9", "azure-variables", `
 fetchConfig:
   url: https://github.com/myorg/awesome-azure-provider/releases
`, "repos/myorg/awesome-azure-provider/releases/tags/v0.4.9", true, []string{`"image":"registry.example.com/x/controller:v0.4.9"`}},
		{"5: the built-in repository", "InfrastructureProvider", "capv-system", "vsphere", "v0.4.9", "vsphere-variables", "",
			"repos/kubernetes-sigs/cluster-api-provider-vsphere/releases/tags/v0.4.9", true, []string{`"image":"registry.example.com/x/controller:v0.4.9"`}},
	}
}

// TestExamples declares each example without a Secret, then without a network, then with both or with a ConfigMap instead of a network.
func TestExamples(t *testing.T) {
	for _, e := range examples() {
		t.Run(e.reason, func(t *testing.T) {
			w := newWorld(t)
			w.unavailable = true // The images do not exist.
			w.create(fmt.Sprintf(`
apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: %s
metadata: {name: %s, namespace: %s, uid: example, generation: 1}
spec:
 version: %s
 secretName: %s%s`, e.kind, e.name, e.namespace, e.version, e.secret, e.spec))
			p := w.reconcile(w.provider(e.kind, e.namespace, e.name))
			w.reports(p, operatorv1.ProviderInstalledCondition, "False ComponentsFetchError: spec.secretName: Secret "+e.namespace+"/"+e.secret+" does not exist: create it")
			testenv.Must(t, w.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: e.secret}}))
			p = w.reconcile(p)
			w.reports(p, operatorv1.ProviderInstalledCondition, "False ComponentsFetchError: ", "https://"+githubAPI+"/"+e.path, noNetwork)

			if e.isOnline {
				w.hosts[githubAPI] = serveGitHub(e)
				w.Clock.Step(10 * time.Second)
			} else {
				testenv.Must(t, w.Create(t.Context(), simpleConfigMap(e.namespace, e.name, e.version)))
				w.change(p, "{fetchConfig: {selector: {matchLabels: {provider-components: "+e.name+"}}}}")
			}
			p = w.reconcile(p)
			w.reports(p, operatorv1.ProviderInstalledCondition, "True")
			d := w.deployment(e.namespace, e.name)
			spec := encoded(t, d.Spec)
			for _, part := range e.deployment {
				if !strings.Contains(spec, part) {
					t.Errorf("%s is not in %s", part, spec)
				}
			}
			w.reports(p, operatorv1.ReadyCondition, "False MinimumReplicasUnavailable: Waiting for Deployment "+d.Name+" to be available")
		})
	}
}

// serveGitHub responds like GitHub's API for the repository of an example.
func serveGitHub(e example) http.HandlerFunc {
	components, metadata := simpleRelease(e.name, e.version)
	files := map[string]string{"infrastructure-components.yaml": components, "metadata.yaml": metadata}
	repository, _, _ := strings.Cut(e.path, "/releases")
	id := func(name string) uint32 {
		h := fnv.New32()
		fmt.Fprint(h, name)
		return h.Sum32()
	}
	return func(w http.ResponseWriter, r *http.Request) {
		release := map[string]any{"tag_name": e.version}
		var assets []map[string]any
		for name, content := range files {
			if r.URL.Path == fmt.Sprint("/", repository, "/releases/assets/", id(name)) {
				fmt.Fprint(w, content)
				return
			}
			assets = append(assets, map[string]any{"id": id(name), "name": name})
		}
		release["assets"] = assets
		if r.URL.Path != "/"+e.path {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(release) // It is memory.
	}
}
