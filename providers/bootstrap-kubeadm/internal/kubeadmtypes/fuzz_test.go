package kubeadmtypes

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
)

// Whatever a spec contains: kubeadm's configuration is two documents with the same content, in the API version of the Kubernetes
// version, and is written the same each time.
func FuzzInit(f *testing.F) {
	for _, version := range []string{"v1.30.0", "1.21.14", "v1.14.0", "v1.22.0-rc.1", "x", "", "v1.15", "v99.0.0+é"} {
		f.Add([]byte(`{"clusterName":"c","apiServer":{"extraArgs":{"v":"4","a":"é\n---\nkind: X"},"certSANs":["a"],"timeoutForControlPlane":"4m0s"},"etcd":{"local":{"dataDir":"/x"}},"networking":{"podSubnet":"10.0.0.0/8"},"featureGates":{"A":true}}`),
			[]byte(`{"bootstrapTokens":[{"token":"abcdef.0123456789abcdef","ttl":"1h"}],"nodeRegistration":{"name":"{{ ds.meta_data.local_hostname }}","taints":[],"kubeletExtraArgs":{"x":"y"},"imagePullPolicy":"Always"},"skipPhases":["a"],"patches":{"directory":"/p"}}`), version)
		f.Add([]byte(`{"etcd":{"external":{"endpoints":["https://e"],"caFile":"","certFile":"","keyFile":""}},"dns":{"imageTag":"x"},"useHyperKubeImage":true}`), []byte(`{"nodeRegistration":{"taints":null},"localAPIEndpoint":{"advertiseAddress":"1.2.3.4","bindPort":-1}}`), version)
		f.Add([]byte(`{}`), []byte(`{"bootstrapTokens":[{"token":"x"}]}`), version)
	}
	f.Fuzz(func(t *testing.T, cluster, initialize []byte, version string) {
		var c bootstrapv1.ClusterConfiguration
		var i bootstrapv1.InitConfiguration
		if len(cluster)+len(initialize) > 16<<10 || json.Unmarshal(cluster, &c) != nil || json.Unmarshal(initialize, &i) != nil {
			t.Skip("not a KubeadmConfig that an API server accepts")
		}
		text, err := Init(&c, &i, Extra{}, version)
		again, errAgain := Init(&c, &i, Extra{}, version)
		if text != again || (err == nil) != (errAgain == nil) {
			t.Errorf("%q, %v, then %q, %v", text, err, again, errAgain)
		}
		wanted, errVersion := versionFor(version)
		if err != nil {
			return
		}
		if errVersion != nil {
			t.Fatalf("version %q: %v", version, errVersion)
		}
		reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
		for _, want := range []struct {
			kind string
			from any
			into any
		}{{"ClusterConfiguration", &c, &bootstrapv1.ClusterConfiguration{}}, {"InitConfiguration", &i, &bootstrapv1.InitConfiguration{}}} {
			document, err := reader.Read()
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			var head struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal(document, &head); err != nil || head.APIVersion != wanted || head.Kind != want.kind {
				t.Fatalf("%+v, %v instead of %s %s\n%s", head, err, wanted, want.kind, document)
			}
			if err := yaml.Unmarshal(document, want.into); err != nil {
				t.Fatalf("%v\n%s", err, document)
			}
			if wanted != v1beta3 {
				continue // It has less.
			}
			if diff := cmp.Diff(want.from, want.into, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(bootstrapv1.ClusterConfiguration{}, "TypeMeta"), cmpopts.IgnoreFields(bootstrapv1.InitConfiguration{}, "TypeMeta")); diff != "" {
				t.Errorf("-spec +document:\n%s\n%s", diff, document)
			}
		}
		if _, err := reader.Read(); err == nil {
			t.Errorf("there is a third document:\n%s", text)
		}
	})
}
